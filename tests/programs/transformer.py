"""Trains a transformer on the next token: sequences so short that operators cost more than their arithmetic."""

import argparse

import torch
from torch import nn

TOKENS = 64
WIDTH = 32
LENGTH = 16
BATCH = 2
LAYERS = 2


class LanguageModel(nn.Module):
    """Embedding, causal encoder layers and a projection to tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=2, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.projection = nn.Linear(WIDTH, TOKENS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens) + self.position
        return self.projection(self.encoder(hidden, mask=self.mask, is_causal=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = LanguageModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(options.steps):
        tokens = torch.randint(TOKENS, (BATCH, LENGTH + 1))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
