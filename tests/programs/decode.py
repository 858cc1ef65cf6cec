"""Decodes token by token; compiled, it compiles again whenever the cache of keys and values has grown."""

import argparse

import torch
from torch import nn

TOKENS = 128
WIDTH = 64
HEADS = 4
LAYERS = 3
CHUNK = 512


class Layer(nn.Module):
    """Attention to all earlier tokens, whose keys and values are kept, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(WIDTH, 3 * WIDTH)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(
        self, hidden: torch.Tensor, cache: torch.Tensor, position: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        query, key, value = self.projection(hidden).view(3, HEADS, 1, WIDTH // HEADS)
        cache.index_copy_(2, position, torch.stack((key, value)))
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
        seen = torch.arange(caches.shape[3]) <= position
        for layer, cache in zip(self.layers, caches, strict=True):
            hidden = layer(hidden, cache, position, seen)
        return self.head(hidden).argmax(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Decoder().eval()
    if options.compile:
        model = torch.compile(model, dynamic=False)
    token = torch.zeros(1, dtype=torch.long)
    caches = torch.zeros(LAYERS, 2, HEADS, 0, WIDTH // HEADS)
    total = 0
    with torch.no_grad():
        for step in range(options.steps):
            if step % CHUNK == 0:
                caches = nn.functional.pad(caches, (0, 0, 0, CHUNK))
            token = model(token, caches, torch.tensor([step]))
            total += int(token)
    print(f"tokens sum to {total}")


if __name__ == "__main__":
    main()
