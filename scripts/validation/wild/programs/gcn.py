"""Trains a graph network of PyTorch Geometric on a random graph."""

import torch
from _options import read_options
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

CLASSES = 4


class Network(nn.Module):
    """Two convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = GCNConv(width, width)
        self.second = GCNConv(width, CLASSES)

    def forward(self, graph: Data) -> torch.Tensor:
        """Logits of the nodes."""
        x = self.first(graph.x, graph.edge_index).relu()
        return self.second(x, graph.edge_index)


def prepared(nodes: int = 1_000, width: int = 32) -> tuple[Network, torch.optim.Optimizer, Data]:
    """A network, its optimizer, and a graph in which a node has five edges."""
    torch.manual_seed(0)
    edges = torch.randint(nodes, (2, 5 * nodes))
    graph = Data(x=torch.randn(nodes, width), edge_index=edges, y=torch.randint(CLASSES, (nodes,)))
    model = Network(width)
    return model, torch.optim.Adam(model.parameters(), lr=1e-3), graph


def step(model: Network, optimizer: torch.optim.Optimizer, graph: Data) -> torch.Tensor:
    """One step of the training; returns the loss."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(graph), graph.y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def main() -> None:
    """Train and print the loss."""
    options = read_options(__doc__, steps=2_500, nodes=1_000, width=32)
    model, optimizer, graph = prepared(options.nodes, options.width)
    for _ in range(options.steps):
        loss = step(model, optimizer, graph)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
