"""What ``__main__`` imports."""


def greeting(name: str) -> str:
    return f"hello from {name}"
