"""Trains a small multilayer perceptron: most of a step is AdamW, which visits many small parameters one by one."""

import argparse

import torch
from torch import nn

WIDTH = 32
LAYERS = 12
BATCH = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--foreach", action=argparse.BooleanOptionalAction, default=False)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=options.foreach)
    inputs, wanted = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
