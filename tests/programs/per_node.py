"""Passes messages in a graph: node by node in a Python loop, or all nodes at once with torch.vmap."""

import argparse

import torch

NODES = 64
NEIGHBOURS = 4
WIDTH = 16


def update(mine: torch.Tensor, theirs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A node's new features from its own and its neighbours'."""
    return torch.tanh(torch.cat((mine, theirs.mean(0))) @ weight)


def node_by_node(features: torch.Tensor, neighbours: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.stack([update(features[node], features[neighbours[node]], weight) for node in range(NODES)])


def all_at_once(features: torch.Tensor, neighbours: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.vmap(update, in_dims=(0, 0, None))(features, features[neighbours], weight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--vmap", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    propagate = all_at_once if options.vmap else node_by_node
    neighbours = torch.randint(NODES, (NODES, NEIGHBOURS))
    weight = torch.randn(2 * WIDTH, WIDTH) / WIDTH**0.5
    features = torch.randn(NODES, WIDTH)
    for _ in range(options.steps):
        features = propagate(features, neighbours, weight)
    print(f"features sum to {features.double().sum().item():.2f}")


if __name__ == "__main__":
    main()
