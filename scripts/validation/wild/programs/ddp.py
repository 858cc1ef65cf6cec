"""Trains a small network on several ranks over Gloo: torchrun --nproc-per-node 2 ddp.py."""

import torch
import torch.distributed as dist
from _options import read_options
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train; the first rank prints the loss."""
    options = read_options(__doc__, steps=2_000, width=256)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    network = nn.Sequential(nn.Linear(options.width, options.width), nn.ReLU(), nn.Linear(options.width, 1))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, target = torch.randn(64, options.width), torch.randn(64, 1)
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
