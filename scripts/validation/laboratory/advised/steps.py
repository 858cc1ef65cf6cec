"""The programs of ``tests/programs`` as calls that ``advise`` can try remedies on: a step each, and what makes its arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.programs import collected as collected_program
from tests.programs import decode as decode_program
from tests.programs import matmul as matmul_program
from tests.programs import mlp_adamw as mlp_program
from tests.programs import starved_loader as loader_program
from tests.programs import threads as threads_program
from tests.programs import transformer as transformer_program

_BATCHES = 100


def train(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    """One training step of a perceptron."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return float(loss.item())


def make_mlp() -> tuple[Any, ...]:
    """A perceptron whose AdamW visits its parameters one by one."""
    torch.set_num_threads(1)
    width, batch = mlp_program.WIDTH, mlp_program.BATCH
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(mlp_program.LAYERS)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    return model, optimizer, torch.randn(batch, width), torch.randn(batch, width)


def train_transformer(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> float:
    """One training step on the next token."""
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.item())


def make_transformer() -> tuple[Any, ...]:
    """A transformer whose operators are too small."""
    torch.set_num_threads(1)
    model = transformer_program.LanguageModel()
    tokens = torch.randint(transformer_program.TOKENS, (transformer_program.BATCH, transformer_program.LENGTH + 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05), tokens


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader[Any]) -> float:
    """An epoch over samples that are decoded in Python."""
    last = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
        loss.backward()
        optimizer.step()
        last = float(loss.item())
    return last


def make_loader() -> tuple[Any, ...]:
    """A DataLoader whose one process decodes."""
    torch.set_num_threads(1)
    features = loader_program.FEATURES
    model = nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, 1))
    data = loader_program.Encoded(_BATCHES * loader_program.BATCH)
    loader = DataLoader(data, batch_size=loader_program.BATCH, num_workers=1, persistent_workers=True)
    return model, torch.optim.SGD(model.parameters(), lr=0.01), loader


def decode(model: nn.Module, token: torch.Tensor, caches: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """The next token at batch 1."""
    result: torch.Tensor = model(token, caches, position)
    return result


def make_decode() -> tuple[Any, ...]:
    """A decoder and a window of one size."""
    torch.set_num_threads(1)
    head = decode_program.WIDTH // decode_program.HEADS
    caches = torch.zeros(decode_program.LAYERS, 2, decode_program.HEADS, decode_program.GROWN_BY, head)
    model = decode_program.Decoder().eval().requires_grad_(False)
    return model, torch.zeros(1, dtype=torch.long), caches, torch.tensor([3])


def learn(buffer: list[Any], model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """A step on a replay buffer of Python objects, most of which stay alive."""
    state = collected_program.STATE
    new = ({"state": [float(n % 7)] * state, "reward": [n % 3]} for n in range(collected_program.NEW))
    buffer.extend(new)
    del buffer[: collected_program.NEW]
    batch = buffer[:: len(buffer) // 16][:16]
    inputs = torch.tensor([sample["state"] for sample in batch])
    targets = torch.tensor([sample["reward"] for sample in batch], dtype=torch.float32)
    return train(model, optimizer, inputs, targets)


def make_collected() -> tuple[Any, ...]:
    """A buffer so full that a collection of garbage takes long."""
    torch.set_num_threads(1)
    state = collected_program.STATE
    model = nn.Sequential(nn.Linear(state, 32), nn.ReLU(), nn.Linear(32, 1))
    buffer = [{"state": [float(n % 7)] * state, "reward": [n % 3]} for n in range(collected_program.KEPT)]
    return buffer, model, torch.optim.SGD(model.parameters(), lr=1e-3)


def wave(total: torch.Tensor, waves: torch.Tensor) -> torch.Tensor:
    """Four operators that are just large enough to be divided among threads."""
    for _ in range(4):
        total = total * 0.5 + waves
    return total


def make_wave() -> tuple[Any, ...]:
    """More threads than cores."""
    torch.set_num_threads(8)
    return torch.zeros(threads_program.ELEMENTS), torch.linspace(0, 1, threads_program.ELEMENTS)


def multiply(matrix: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """Arithmetic: nothing is wrong."""
    return matrix @ rotation


def make_matrices() -> tuple[Any, ...]:
    """A matrix and a rotation."""
    width = matmul_program.WIDTH
    return torch.randn(width, width), torch.linalg.qr(torch.randn(width, width)).Q
