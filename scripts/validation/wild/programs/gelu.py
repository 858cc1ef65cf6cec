"""The talk's GELU of many numbers, eager or compiled."""

import torch
from _options import read_options


def prepared(elements: int = 10_000_000) -> tuple[torch.Tensor]:
    """The numbers."""
    torch.manual_seed(0)
    return (torch.randn(elements),)


def step(x: torch.Tensor) -> torch.Tensor:
    """Five operations, each with a result of its own."""
    return x * 0.5 * (1 + torch.erf(x / 1.41421))


fused = torch.compile(step)


def compiled_step(x: torch.Tensor) -> torch.Tensor:
    """The same, compiled."""
    output: torch.Tensor = fused(x)
    return output


def main() -> None:
    """Compute again and again, and print the mean."""
    options = read_options(__doc__, steps=150, elements=10_000_000, compile=False)
    (x,) = prepared(options.elements)
    for _ in range(options.steps):
        y = compiled_step(x) if options.compile else step(x)
    print(f"mean {y.mean().item():.4f}")


if __name__ == "__main__":
    main()
