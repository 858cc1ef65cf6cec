"""Trains on samples that are decoded in Python: the loop waits for a DataLoader with too few workers."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 64
BATCH = 8


class Encoded(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that are decoded byte by byte whenever they are asked for."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        state, values = index + 1, []
        for number in range(8 * FEATURES):
            state = (state * 1103515245 + 12345) % 2**31
            if number % 8 == 0:
                values.append(state / 2**31)
        return torch.tensor(values), torch.tensor([float(index % 2)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=1, help="0 decodes in the loop itself")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Encoded(options.steps * BATCH), batch_size=BATCH, num_workers=options.workers)
    for inputs, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), wanted)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
