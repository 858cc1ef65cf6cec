"""Learns from a replay buffer of Python objects: so many stay alive that every full garbage collection takes long."""

import argparse
import gc

import torch
from torch import nn

KEPT = 100_000
NEW = 1000
STATE = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--gc", action=argparse.BooleanOptionalAction, default=True, help="collect garbage")
    options = parser.parse_args()
    if not options.gc:
        gc.disable()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(STATE, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    buffer = [{"state": [float(n % 7)] * STATE, "reward": [n % 3]} for n in range(KEPT)]
    for step in range(options.steps):
        buffer.extend({"state": [float(n % 7)] * STATE, "reward": [n % 3]} for n in range(step, step + NEW))
        del buffer[:NEW]
        batch = [buffer[(step * 31 + n * 17) % KEPT] for n in range(16)]
        inputs = torch.tensor([each["state"] for each in batch])
        wanted = torch.tensor([each["reward"] for each in batch], dtype=torch.float32)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
