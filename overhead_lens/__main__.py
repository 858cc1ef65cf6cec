"""``python -m overhead_lens``."""

from overhead_lens.cli.main import main

if __name__ == "__main__":
    main()
