"""The options of the programs: what there is to do, and sizes."""

import argparse


def read_options(description: str | None, **defaults: int) -> argparse.Namespace:
    """What the command line says, an option for each of the defaults; a default of False makes it a flag."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()
