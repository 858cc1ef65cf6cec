"""Trains a small network in a loop of accelerate."""

import torch
from _options import read_options
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 10


def main() -> None:
    """Train and print the loss."""
    options = read_options(__doc__, steps=4_000, width=256)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(
        nn.Linear(options.width, options.width),
        nn.GELU(),
        nn.LayerNorm(options.width),
        nn.Linear(options.width, CLASSES),
    )
    data = TensorDataset(torch.randn(4096, options.width), torch.randint(CLASSES, (4096,)))
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=1e-3), DataLoader(data, batch_size=64)
    )
    done = 0
    while done < options.steps:
        for x, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), target)
            accelerator.backward(loss)
            optimizer.step()
            done += 1
            if done == options.steps:
                break
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
