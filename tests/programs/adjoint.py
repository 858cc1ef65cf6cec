"""Fits a rate of decay; the equation and its adjoint are integrated in Python, by a torch.autograd.Function."""

import argparse

import torch
from torch import nn

INTERVALS = 20
TRIES = 300


def step_size(number: int) -> float:
    """The size of a step, by bisection."""
    low, high = 0.0, 2.0
    for _ in range(TRIES):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * number < 0.1 else (low, middle)
    return low / INTERVALS


class Decay(torch.autograd.Function):
    """What is left after all intervals."""

    @staticmethod
    def forward(ctx, rate, start):
        states = [start]
        for number in range(1, INTERVALS + 1):
            states.append(states[-1] - step_size(number) * rate * states[-1])
        ctx.save_for_backward(rate, *states)
        return states[-1]

    @staticmethod
    def backward(ctx, grad):
        rate, *states = ctx.saved_tensors
        of_rate = torch.zeros_like(rate)
        for number in range(INTERVALS, 0, -1):
            size = step_size(number)
            of_rate -= size * (grad * states[number - 1]).sum()
            grad = grad - size * rate * grad
        return of_rate, grad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4_000)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rate = nn.Parameter(torch.tensor(0.5))
    optimizer = torch.optim.SGD([rate], lr=0.01)
    start = torch.rand(16)
    wanted = Decay.apply(torch.tensor(0.9), start)
    loss = torch.zeros(())
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss = (Decay.apply(rate, start) - wanted).square().sum()
        loss.backward()
        optimizer.step()
    print(f"rate {rate.item():.4f}, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
