"""Trains a policy in epochs of many small updates; before each epoch it plays a game that is simulated in Python."""

import argparse

import torch
from torch import nn

UPDATES = 64
MOVES = 50
INSTANTS = 12_000
WIDTH = 16


def simulate(angle: float, speed: float, push: float) -> tuple[float, float]:
    """A pole under a push, for so many instants."""
    for _ in range(INSTANTS):
        speed += 0.00003 * (angle - angle**3 / 6 + push - 0.1 * speed)
        angle += 0.00003 * speed
    return angle, speed


def play(policy: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """States of one game and what would have held the pole."""
    angle, speed, states, wanted = 0.1, 0.0, [], []
    for _ in range(MOVES):
        state = torch.tensor([angle, speed])
        with torch.no_grad():
            push = policy(state).item()
        states.append(state)
        wanted.append([-2.0 * angle - speed])
        angle, speed = simulate(angle, speed, max(-1.0, min(1.0, push)))
    return torch.stack(states), torch.tensor(wanted)


def improve(
    policy: nn.Module, optimizer: torch.optim.Optimizer, games: tuple[torch.Tensor, ...], updates: int
) -> float:
    """An epoch of updates; the last loss."""
    states, wanted = games
    loss = torch.zeros(())
    for _ in range(updates):
        optimizer.zero_grad()
        loss = (policy(states) - wanted).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6_400)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(2, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    loss, left = 0.0, options.steps
    while left > 0:
        loss = improve(policy, optimizer, play(policy), min(UPDATES, left))
        left -= UPDATES
    print(f"loss {loss:.4f}")


if __name__ == "__main__":
    main()
