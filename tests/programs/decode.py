"""Decodes token by token from a window of earlier ones; compiled, it compiles again whenever the window has grown."""

import argparse

import torch
from torch import nn

TOKENS = 128
WIDTH = 32
HEADS = 2
LAYERS = 2
GROWN_BY = 16
WINDOWS = 8


class Layer(nn.Module):
    """Attention to the window, whose keys and values are kept, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(WIDTH, 3 * WIDTH)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(
        self, hidden: torch.Tensor, cache: torch.Tensor, place: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        query, key, value = self.projection(hidden).view(3, HEADS, 1, WIDTH // HEADS)
        cache.index_copy_(2, place, torch.stack((key, value)))
        hidden = hidden + nn.functional.scaled_dot_product_attention(query, *cache, attn_mask=seen).view(1, WIDTH)
        return hidden + self.perceptron(hidden)


class Decoder(nn.Module):
    """The next token after one token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, token: torch.Tensor, caches: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(token)
        window = caches.shape[3]
        seen, place = torch.arange(window) <= position, position % window
        for layer, cache in zip(self.layers, caches, strict=True):
            hidden = layer(hidden, cache, place, seen)
        return self.head(hidden).argmax(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder().eval()
    if options.compile:
        model = torch.compile(model, dynamic=False)
    token = torch.zeros(1, dtype=torch.long)
    caches = torch.zeros(LAYERS, 2, HEADS, 0, WIDTH // HEADS)
    total = 0
    with torch.no_grad():
        for step in range(options.steps):
            if step % -(-options.steps // WINDOWS) == 0:
                caches = nn.functional.pad(caches, (0, 0, 0, GROWN_BY))
            token = model(token, caches, torch.tensor([step]))
            total += int(token)
    print(f"tokens sum to {total}")


if __name__ == "__main__":
    main()
