"""The program ``per_node`` as a scenario: messages node by node, or for all nodes by torch.vmap."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from overhead_lens.scenario import NoParams, Scenario

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.programs import per_node as program


def inputs(_: NoParams) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features of the nodes, numbers of their neighbours and a weight."""
    torch.set_num_threads(1)
    neighbours = torch.randint(program.NODES, (program.NODES, program.NEIGHBOURS))
    weight = torch.randn(2 * program.WIDTH, program.WIDTH) / program.WIDTH**0.5
    return torch.randn(program.NODES, program.WIDTH), neighbours, weight


SCENARIO = Scenario(
    name="pass_messages",
    summary="messages in a graph, node by node",
    source="tests/programs/per_node.py",
    params=NoParams,
    inputs=inputs,
    variants={"node_by_node": program.node_by_node, "at_once": program.all_at_once},
)
