"""Computes in processes of its own, spawned or forked; one of them fails."""

import multiprocessing
import sys


def square(number: int) -> int:
    return number * number


def fail() -> None:
    sys.exit(3)


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(square, range(5)))
    process = context.Process(target=fail)
    process.start()
    process.join()
    print("exit code", process.exitcode)
