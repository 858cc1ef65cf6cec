"""Ends with an exception that another one caused."""


class Failure(Exception):
    """An error of the program's own."""


def divide(number: int) -> float:
    return number / 0


def main() -> None:
    try:
        divide(1)
    except ZeroDivisionError as error:
        raise Failure("cannot divide") from error


print("before")
main()
