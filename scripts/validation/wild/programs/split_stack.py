"""The puzzler "To Fuse or Not to Fuse?" on a CPU: sixteen pieces are normalized one by one, then stacked."""

import torch
from _options import read_options
from torch import nn

PIECES = 16


def prepared(rows: int = 1_024, columns: int = 256) -> tuple[torch.Tensor, nn.LayerNorm, nn.Linear]:
    """The data in one dimension, the normalization, and the layer at the end."""
    torch.manual_seed(0)
    norm = nn.LayerNorm(columns, eps=0, elementwise_affine=False)
    return torch.randn(PIECES * rows * columns), norm, nn.Linear(columns, 1)


def step(data: torch.Tensor, norm: nn.LayerNorm, linear: nn.Linear) -> torch.Tensor:
    """Split, normalize, tanh, stack, linear, ReLU."""
    columns = linear.in_features
    pieces = torch.split(data, len(data) // PIECES)
    done = [torch.tanh(norm(piece.view(-1, columns))) for piece in pieces]
    return torch.relu(linear(torch.stack(done)))


def main() -> None:
    """Compute again and again, and print what comes out."""
    options = read_options(__doc__, steps=400, rows=1_024, columns=256)
    data, norm, linear = prepared(options.rows, options.columns)
    for _ in range(options.steps):
        output = step(data, norm, linear)
    print(f"sum {output.double().sum().item():.4f}")


if __name__ == "__main__":
    main()
