"""The forum's "Batching Question": one linear layer on many vectors, one at a time, then on all of them at once."""

import torch
from _options import read_options
from torch import nn

VECTORS = 10_000


def prepared(width: int = 256) -> tuple[nn.Linear, torch.Tensor]:
    """The layer and a vector."""
    torch.manual_seed(0)
    return nn.Linear(width, width), torch.randn(width)


def step(layer: nn.Linear, vector: torch.Tensor) -> torch.Tensor:
    """The layer on one vector."""
    output: torch.Tensor = layer(vector)
    return output


def main() -> None:
    """Apply the layer both ways and print whether they agree."""
    options = read_options(__doc__, steps=400_000, width=256)
    layer, _ = prepared(options.width)
    vectors = torch.randn(VECTORS, options.width)
    for number in range(options.steps):
        one = step(layer, vectors[number % VECTORS])
    batched = layer(vectors)
    print(f"they agree: {torch.allclose(one, batched[number % VECTORS], atol=1e-5)}")


if __name__ == "__main__":
    main()
