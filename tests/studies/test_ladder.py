from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.studies.ladder.analysis import LAYERS, RUNGS, STEPS, Ladder, Rung, make_ladder
from tests.drawn.ladders import META, Sides, frame, published, typed

CALL = {
    "eager": [2_000.0],
    "compiled": [10_000.0],
    "guards_filtered": [9_000.0],
    "direct_bytecode": [6_000.0],
    "generated_code": [1_500.0],
    "allocation_hoisted": [900.0],
    "kernel_binding": [100.0],
}


def ladder(rungs: Sides, steps: Sides | None = None, /, faults: int = 0, blocks: int = 3, **meta: Any) -> Ladder:
    made = {**META, "names": list(rungs), **meta}
    return make_ladder(typed(made), frame(rungs, steps, faults, blocks), "somewhere")


def rung(made: Ladder, name: str) -> Rung:
    found = made.rung(name)
    assert found is not None
    return found


def test_a_rung_is_the_median_of_its_processes_per_call() -> None:
    made = ladder({"eager": [10.0, 12.0, 50.0], "compiled": [30.0, 33.0, 31.5]}, faults=2)
    assert [(each.name, each.ns, each.minor_faults) for each in made.rungs] == [
        ("eager", 12.0, 2.0),
        ("compiled", 31.5, 2.0),
    ]
    assert (made.processes, made.directory) == (3, "somewhere")


def test_steps_are_paired_and_so_process_effects_cancel() -> None:
    made = ladder({"eager": [100.0, 1_000.0, 5_000.0], "compiled": [105.0, 1_005.0, 5_005.0]})
    found = rung(made, "compiled")
    assert (found.step_ns, found.step_ci95_ns) == (5.0, (5.0, 5.0))
    assert found.ci95_ns is not None
    assert found.ci95_ns[1] - found.ci95_ns[0] > 1_000


def test_the_step_is_the_median_of_differences_and_not_the_difference_of_medians() -> None:
    made = ladder({"eager": [100.0, 200.0, 300.0], "compiled": [305.0, 105.0, 205.0]})
    assert rung(made, "compiled").step_ns == -95.0
    assert rung(made, "eager").step_ns is None


def test_an_interval_of_a_time_stays_above_zero() -> None:
    # The ratios 10 / 505 and 1,000 / 505, to the power of 12.5.
    found = rung(ladder({"eager": [10.0, 1_000.0]}), "eager").ci95_ns
    assert found == (pytest.approx(505 * (10 / 505) ** 12.5), pytest.approx(505 * (1_000 / 505) ** 12.5))


def test_missing_rungs_have_reasons() -> None:
    made = ladder(
        {"eager": [1.0, 2.0], "compiled": [None, 3.0]},
        names=["eager", "compiled", "kernel_ctypes", "guards_filtered", "of_the_future"],
        reasons={"eager": None, "kernel_ctypes": "no library"},
    )
    assert [(each.name, each.ns, each.reason) for each in made.rungs] == [
        ("eager", 1.5, None),
        ("compiled", None, "not every process could time it"),
        ("kernel_ctypes", None, "no library"),
        ("guards_filtered", None, "not every process could time it"),
    ]
    assert made.warnings == ("this version does not know the rungs of_the_future",)


def test_a_rung_whose_neighbour_is_missing_has_a_time_and_no_step() -> None:
    found = rung(ladder({"eager": [1.0], "guards_filtered": [4.0]}), "guards_filtered")
    assert (found.ns, found.step_ns, found.step_ci95_ns) == (4.0, None, None)


def test_single_steps_are_paired_too() -> None:
    kind = STEPS[0]
    made = ladder(
        {"eager": [1.0] * 3},
        {kind.slow: [100.0, 200.0, 300.0], kind.fast: [90.0, 180.0, 270.0]},
        pairs={"guard": "no managers"},
    )
    first = made.steps[0]
    assert (first.kind, first.slow_ns, first.fast_ns, first.delta_ns) == (kind, 200.0, 180.0, 20.0)
    assert [(step.kind.pair, step.delta_ns, step.reason) for step in made.steps[1:3]] == [
        ("guard", None, "no managers"),
        ("context_manager", None, "not every process could time it"),
    ]


def test_without_any_single_step() -> None:
    made = ladder({"eager": [1.0]}, pairs={"binding": "no compiler"})
    assert [step.slow_ns for step in made.steps] == [None] * len(STEPS)
    assert made.steps[0].reason == "no compiler"


def test_blocks_beside_a_disturbed_reference_are_left_out_and_said() -> None:
    rows = frame({"eager": [10.0]}, blocks=10)
    rows.loc[5:, "reference_ns"] = 300
    rows.loc[5:, "wall_ns"] *= 7
    made = make_ladder(typed({**META, "names": ["eager"]}), rows, "")
    assert rung(made, "eager").ns == 10.0
    assert made.warnings == ("60% of the blocks were left out: the machine was disturbed",)


def test_processes_far_apart_are_said() -> None:
    assert ladder({"eager": [10.0, 20.0]}).warnings == ()
    (warning,) = ladder({"eager": [10.0, 21.0], "compiled": [9.0, 9.0]}).warnings
    assert warning.startswith("processes differ by more than 2 times in 1 of 2 rungs: ")


def test_layers_are_the_gaps_between_rungs() -> None:
    assert [layer.ns for layer in ladder(CALL).layers] == [1_000, 3_000, 4_500, 600, 800, 100]


def test_layers_have_the_interval_of_the_paired_difference() -> None:
    times = {
        upper: [ns, ns + 5_000.0]
        for ns, (_, upper, _) in zip((900.0, 800.0, 500.0, 300.0, 200.0, 50.0), LAYERS, strict=True)
    }
    layers = ladder(times).layers
    assert [layer.ci95_ns for layer in layers[:-1]] == [(100, 100), (300, 300), (200, 200), (100, 100), (150, 150)]
    low, high = layers[-1].ci95_ns
    assert low < 2_550 == layers[-1].ns < high


TIMES = st.lists(st.floats(0.01, 1e9), min_size=len(LAYERS), max_size=len(LAYERS))


@settings(max_examples=60)
@given(TIMES)
def test_layers_sum_to_the_compiled_time_exactly(times: list[float]) -> None:
    made = ladder({upper: [ns] for ns, (_, upper, _) in zip(times, LAYERS, strict=True)})
    compiled = rung(made, "compiled").ns
    assert compiled is not None
    assert sum(layer.ns for layer in made.layers) == round(compiled)


@pytest.mark.parametrize("missing", [upper for _, upper, _ in LAYERS])
def test_without_one_of_their_rungs_there_are_no_layers(missing: str) -> None:
    assert ladder({name: ns for name, ns in CALL.items() if name != missing}).layers == ()


def test_published_figures_meet_their_rung_and_the_eager_figure_of_their_source() -> None:
    made = ladder(
        CALL,
        published=[
            published("eager", 4_000, "post"),
            published("eager", 3_000, "issue"),
            published("compiled", 12_000, "issue"),
            published("compiled", 10_000, "post"),
            published("compiled", 9_000, "elsewhere"),
            published("", 1, "post"),
        ],
    )
    assert [(each.source, each.ns, each.eager_ns) for each in rung(made, "compiled").published] == [
        ("issue", 12_000, 3_000),
        ("post", 10_000, 4_000),
        ("elsewhere", 9_000, 0.0),
    ]
    assert rung(made, "guards_filtered").published == ()


@pytest.mark.parametrize(
    ("rung_name", "params", "figure", "fits"),
    [
        ("compiled", {"size": 10, "requires_grad": False}, {}, True),
        ("compiled", {"size": 11, "requires_grad": False}, {}, False),
        ("compiled", {"size": 10, "requires_grad": True}, {}, False),
        ("compiled", {"size": 10, "requires_grad": False}, {"params": {"size": 11}}, False),
        ("compiled", {"size": 11, "requires_grad": False}, {"params": {"size": 11}}, True),
        ("compiled", {"size": 10, "requires_grad": False}, {"variant": "another"}, False),
        ("compiled", {"size": 10, "requires_grad": False}, {"params": {"requires_grad": True}}, False),
        ("compiled_requires_grad", {"size": 10, "requires_grad": False}, {"params": {"requires_grad": True}}, True),
        ("compiled_requires_grad", {"size": 10, "requires_grad": True}, {"params": {"requires_grad": True}}, True),
    ],
)
def test_published_figures_are_of_the_same_variant_and_parameters(
    rung_name: str, params: dict[str, Any], figure: dict[str, Any], fits: bool
) -> None:
    made = ladder(
        {rung_name: [5.0]},
        params=params,
        default_params={"size": 10, "requires_grad": False},
        published=[published(rung_name, 7, **figure)],
    )
    assert bool(rung(made, rung_name).published) is fits


def test_the_sentence() -> None:
    figures = {"eager": 4_000, "compiled": 8_000, "guards_filtered": 7_200, "generated_code": 6_000}
    made = ladder(CALL, published=[published(name, ns) for name, ns in figures.items()])
    assert made.sentence == (
        "Of the compiled call's 10.00 µs, 4.50 µs (45%) is Dynamo's bytecode and AOTAutograd's runtime wrappers. "
        "The largest change since the published ladder is between “all guards filtered” and “Inductor's code called "
        "directly”: 0.30 times the eager call then, 3.75 now."
    )


def test_the_sentence_without_published_figures_or_without_layers() -> None:
    assert ladder(CALL).sentence.endswith("is Dynamo's bytecode and AOTAutograd's runtime wrappers.")
    assert ladder({"eager": [1.0], "compiled": [2.0]}).sentence == ""
    two = ladder({"eager": [100.0], "compiled": [300.0]}, published=[published("eager", 10), published("compiled", 20)])
    assert two.sentence == (
        "The largest change since the published ladder is in “torch.compile”: 2.00 times the eager call then, 3.00 now."
    )


def test_every_rung_leads_to_the_first() -> None:
    made = ladder({name: [1.0] for name in RUNGS})
    assert {each.name: each.depth for each in made.rungs if each.depth in (0, 5)} == {"eager": 0, "kernel_binding": 5}
