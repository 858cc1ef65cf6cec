"""Guards put together: by kind, place, module, layer, filter; every sum by hand."""

from __future__ import annotations

from overhead_lens.budget.guards import guard_groups
from overhead_lens.budget.model import Guard, GuardGroup
from overhead_lens.instruments.guards.record import INBUILT, Guards, Leaf

MODEL = "G['model']"
LAYERS = f"{MODEL}._modules['layers']"


def leaf(kind: str, source: str, warm_ns: float, owner: str = "", text: str = "") -> Leaf:
    return Leaf(kind, text, source, warm_ns=[warm_ns - 1, warm_ns, warm_ns + 2], owner=owner)


LEAVES = [
    leaf("GLOBAL_STATE", "", 100),
    leaf("LAMBDA_GUARD", "", 200),
    leaf("TENSOR_MATCH", "L['x']", 50),
    leaf("TYPE_MATCH", MODEL, 1, "own"),
    leaf("DICT_CONTAINS", f"{MODEL}.__dict__", 2, "own"),
    leaf("TYPE_MATCH", LAYERS, 3, INBUILT),
    leaf("TYPE_MATCH", f"{LAYERS}._modules['0']", 4, INBUILT),
    leaf("TENSOR_MATCH", f"{LAYERS}._modules['0']._parameters['weight']", 60, INBUILT),
    leaf("TYPE_MATCH", f"{LAYERS}._modules['1']", 6, INBUILT),
    leaf("TENSOR_MATCH", f"{LAYERS}._modules['1']._parameters['weight']", 70, INBUILT),
    leaf("EQUALS_MATCH", "G['SCALE']", 5),
    Leaf("ID_MATCH", source="G['f'].x", warm_ns=None, reason="unknown"),
]
SAMPLED = (Guard("TENSOR_MATCH L['x']", 20.0), Guard("TYPE_MATCH G['model']", 2.0), Guard("LAMBDA_GUARD", 30.0))


def groups(by: str, leaves: list[Leaf] = LEAVES) -> dict[str, GuardGroup]:
    return {each.name: each for each in guard_groups(Guards(leaves), SAMPLED) if each.by == by}


def test_by_kind() -> None:
    found = groups("kind")
    assert found["TENSOR_MATCH"] == GuardGroup("kind", "TENSOR_MATCH", 3, 60.0, 50 + 60 + 70, 0)
    assert found["TYPE_MATCH"] == GuardGroup("kind", "TYPE_MATCH", 4, 8.0, 1 + 3 + 4 + 6, 0)
    # No samples, no time.
    assert found["ID_MATCH"] == GuardGroup("kind", "ID_MATCH", 1, None, 0, 0)
    assert list(found)[0] == "TENSOR_MATCH"


def test_by_place() -> None:
    found = groups("place")
    assert {name: (each.count, each.warm_ns) for name, each in found.items()} == {
        "root": (4, 100 + 50 + 1 + 5),
        "python": (1, 200),
        "inside": (7, 2 + 3 + 4 + 60 + 6 + 70),
    }


def test_by_module() -> None:
    assert {name: (each.count, each.warm_ns) for name, each in groups("module").items()} == {
        "model": (2, 1 + 2),
        "model.layers": (1, 3),
        "model.layers.0": (2, 4 + 60),
        "model.layers.1": (2, 6 + 70),
    }


def test_what_a_layer_costs() -> None:
    assert groups("layer") == {
        "model.layers[*]": GuardGroup("layer", "model.layers[*]", 2, (2 * 2 + 2 * 20) / 2, (4 + 60 + 6 + 70) / 2, 2)
    }
    # One alone says nothing of the next; what is numbered below counts to the outermost.
    assert groups("layer", LEAVES[:8]) == {}
    inner = [leaf("TYPE_MATCH", f"{LAYERS}._modules['{at}']._modules['7']", 1, "own") for at in range(3)]
    assert list(groups("layer", inner)) == ["model.layers[*]"]


def test_what_filters_leave_out() -> None:
    assert {name: (each.count, each.warm_ns) for name, each in groups("filter").items()} == {
        "skip_guard_on_inbuilt_nn_modules_unsafe": (5, 3 + 4 + 60 + 6 + 70),
        "skip_guard_on_all_nn_modules_unsafe": (7, 1 + 2 + 3 + 4 + 60 + 6 + 70),
        "keep_tensor_guards_unsafe": (9, 100 + 200 + 1 + 2 + 3 + 4 + 6 + 5),
        "skip_guard_on_globals_unsafe": (9, 1 + 2 + 3 + 4 + 60 + 6 + 70 + 5),
    }


PARAMETER = "check_tensor(G['P'], Parameter, DispatchKeySet(CPU))"


def test_filters_of_tensors() -> None:
    """A parameter's guards are left out, all guards of other tensors stay, and one tensor alone is checked for no alias."""
    leaves = [
        leaf("TENSOR_MATCH", "L['x']", 10),
        leaf("DIMENSION_DYNAMIC_MARKING_GUARD", "L['x']", 20),
        leaf("NO_TENSOR_ALIASING", "L['x']", 30),
        leaf("TENSOR_MATCH", "G['P']", 40, text=PARAMETER),
        leaf("DIMENSION_DYNAMIC_MARKING_GUARD", "G['P']", 50),
        leaf("NO_HASATTR", "L['y']", 60),
        leaf("TENSOR_MATCH", "G['t']", 70),
        leaf("NO_TENSOR_ALIASING", "G['t']", 80),
    ]
    assert {name: (each.count, each.warm_ns) for name, each in groups("filter", leaves).items()} == {
        "keep_tensor_guards_unsafe": (3, 40 + 50 + 60),
        "skip_guard_on_globals_unsafe": (5, 30 + 40 + 50 + 70 + 80),
    }


def test_globals_inside_calls() -> None:
    leaves = [
        leaf("TENSOR_MATCH", "___from_numpy(G['a'])", 1),
        leaf("LAMBDA_GUARD", "", 2, text="L['x'] is G['a']"),
        leaf("LAMBDA_GUARD", "", 4, text="G['a'] is L['x']"),
        leaf("LAMBDA_GUARD", "", 8, text="G['a'].size()[0] == L['x'].size()[0]"),
        leaf("EQUALS_MATCH", f"list(dict.keys({LAYERS}._modules))[0]", 16, "own"),
        leaf("ID_MATCH", "L['FLAG[']", 32),
    ]
    assert groups("filter", leaves)["skip_guard_on_globals_unsafe"].warm_ns == 1 + 2 + 16
    assert groups("module", leaves)["model.layers"].warm_ns == 16


def test_an_eager_call_has_none() -> None:
    assert guard_groups(Guards(), ()) == ()
