from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.studies.ladder.analysis import LAYERS, RUNGS, Ladder, Rung, make_ladder
from tests.drawn.ladders import META, Sides, frame, typed

CALL = {
    "eager": [2_000.0],
    "compiled": [10_000.0],
    "guards_filtered": [9_000.0],
    "direct_bytecode": [6_000.0],
    "generated_code": [1_500.0],
    "allocation_hoisted": [900.0],
    "kernel_binding": [100.0],
}


def ladder(rungs: Sides, /, faults: int = 0, blocks: int = 3, **meta: Any) -> Ladder:
    made = {**META, "names": list(rungs), **meta}
    return make_ladder(typed(made), frame(rungs, faults, blocks), "somewhere")


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


def test_the_sentence() -> None:
    assert ladder(CALL).sentence == (
        "Of the compiled call's 10.00 µs, 4.50 µs (45%) is Dynamo's bytecode and AOTAutograd's runtime wrappers."
    )
    assert ladder({"eager": [1.0], "compiled": [2.0]}).sentence == ""


def test_every_rung_leads_to_the_first() -> None:
    made = ladder({name: [1.0] for name in RUNGS})
    assert {each.name: each.depth for each in made.rungs if each.depth in (0, 5)} == {"eager": 0, "kernel_binding": 5}
