"""Computes beside a thread that counts in Python: after every operator the two fight for the interpreter's lock."""

import argparse
import threading

import torch

WIDTH = 320


def count(until: threading.Event) -> None:
    """Keep the interpreter busy."""
    number = 0
    while not until.is_set():
        number = (number + 1) % 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--beside", action=argparse.BooleanOptionalAction, default=True, help="start the other thread")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weight = torch.randn(WIDTH, WIDTH) / WIDTH**0.5
    state = torch.randn(WIDTH, WIDTH)
    done = threading.Event()
    if options.beside:
        threading.Thread(target=count, args=(done,), name="counting", daemon=True).start()
    for _ in range(options.steps):
        state = torch.tanh(state @ weight)
    done.set()
    print(f"state sums to {state.double().sum().item():.4f}")


if __name__ == "__main__":
    main()
