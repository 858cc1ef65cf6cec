"""Hand-written callgrind files with exact counts."""

from __future__ import annotations

import gzip
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.readers.callgrind import TRUNCATED, CallGraph, Edge, Function, parse_callgrind, read_callgrind

COMPRESSED = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  python worker.py a=b
part: 1

desc: Timerange: Basic block 0 - 17

positions: line
events: Ir
summary: 0

ob=(1) /usr/lib/libtorch_cpu.so
fl=(1) ???
fn=(1) at::add(at::Tensor const&)
16 100
+4 20
cob=(2) /lib/libc.so.6
cfi=(2) malloc.c
cfn=(2) malloc
calls=5 30
+2 250
* 7
cfn=(3) at::empty()
calls=5 0
-1 300

fn=(3)
0 50
cob=(2)
cfi=(2)
cfn=(2)
calls=5 30
0 250

ob=(2)
fl=(2)
fn=(2)
30 400
fi=(3) arena.c
+0x5 100
fe=(2)
31

totals: 677
"""


def counts(graph: CallGraph) -> dict[str, int]:
    return {function.symbol: own for function, own in zip(graph.functions, graph.self_counts, strict=True)}


def edges(graph: CallGraph) -> set[tuple[str, str, int, int]]:
    names = [function.symbol for function in graph.functions]
    return {(names[each.caller], names[each.callee], each.call_count, each.inclusive_count) for each in graph.edges}


def test_compressed_names_relative_positions_and_objects_of_callees() -> None:
    graph = parse_callgrind(COMPRESSED.splitlines())
    assert counts(graph) == {"at::add(at::Tensor const&)": 127, "at::empty()": 50, "malloc": 500}
    assert [function.module for function in graph.functions] == ["libtorch_cpu.so", "libc.so.6", "libtorch_cpu.so"]
    assert edges(graph) == {
        ("at::add(at::Tensor const&)", "malloc", 5, 250),
        ("at::add(at::Tensor const&)", "at::empty()", 5, 300),
        ("at::empty()", "malloc", 5, 250),
    }
    assert graph.total_count == 677
    assert graph.issues == {}


def test_names_without_numbers_and_an_explicit_address() -> None:
    graph = parse_callgrind(
        "events: Ir\nfn=main\n1 2\ncfn=(below main)\ncalls=1 0x40\n* 3\nfn=0x1f2\n1 4\ntotals: 6".splitlines()
    )
    assert graph.functions == (Function("main", ""), Function("(below main)", ""), Function("", ""))
    assert graph.self_counts == (2, 0, 4)
    assert graph.edges == (Edge(0, 1, 1, 3),)


def test_contexts_are_functions_of_their_own() -> None:
    text = (
        "events: Ir\nfn=(1) malloc'operator new'at::empty\n0 5\nfn=(2) malloc'free\n0 7\nfn=(3) fib'2\n0 1\ntotals: 13"
    )
    graph = parse_callgrind(text.splitlines())
    assert graph.functions == (
        Function("malloc", "", ("operator new", "at::empty")),
        Function("malloc", "", ("free",)),
        Function("fib", ""),
    )
    assert graph.self_counts == (5, 7, 1)


def test_columns_of_instructions_and_of_other_events() -> None:
    text = "positions: instr line\nevents: Dr Ir Dw\nfn=a\n0x10 3 100 7 9\n+2 +1 100 8\n* * 5\ntotals: 205 15 9"
    graph = parse_callgrind(text.splitlines())
    assert counts(graph) == {"a": 15}
    assert graph.issues == {}


def test_jumps_cost_nothing() -> None:
    graph = parse_callgrind("events: Ir\nfn=a\n1 4\njump=9 5\n1\njcnd=3/9 7\n1\n2 6\ntotals: 10".splitlines())
    assert counts(graph) == {"a": 10}
    assert graph.issues == {}


def test_parts_of_one_file_are_added_up() -> None:
    part = "part: {}\nevents: Ir\nfn=(1) a\n1 4\ncfn=(2) b\ncalls=2 0\n1 6\nfn=(2)\n1 6\ntotals: 10\n"
    graph = parse_callgrind((part.format(1) + part.format(2)).splitlines())
    assert counts(graph) == {"a": 8, "b": 12}
    assert edges(graph) == {("a", "b", 4, 12)}
    assert graph.issues == {}


def test_totals_that_differ_are_told() -> None:
    assert parse_callgrind("events: Ir\nfn=a\n1 4\ntotals: 5".splitlines()).issues == {"totals_differ": 1}


def test_damaged_lines_are_counted() -> None:
    text = "events: Ir\n1 3\nfn=(7)\n1 x\n1 4\nnonsense\nwhat=ever\ncalls=many\n1 5\ntotals: 9"
    graph = parse_callgrind(text.splitlines())
    assert graph.total_count == 9
    assert graph.issues == {"bad_cost": 2, "undefined_name": 1, "unknown_line": 2, "bad_calls": 1}


@given(st.integers(0, len(COMPRESSED) - len("totals: 677\n")))
def test_a_file_cut_off_anywhere_is_truncated(length: int) -> None:
    graph = parse_callgrind(COMPRESSED[:length].splitlines())
    assert graph.issues[TRUNCATED] == 1
    assert graph.total_count <= 677


@given(st.text(alphabet="fnclsob=()0123456789 +-*:\n'", max_size=200))
def test_no_text_changes_what_is_read_around_it(text: str) -> None:
    graph = parse_callgrind(f"events: Ir\nfn=before\n0 5\nfn=between\n{text}\nfn=after\n0 7\n".splitlines())
    assert (counts(graph)["before"], counts(graph)["after"]) == (5, 7)


def test_a_gzip_file_that_breaks_off(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.gz", tmp_path / "cut.gz"
    whole.write_bytes(gzip.compress(COMPRESSED.encode()))
    cut.write_bytes(whole.read_bytes()[:-20])
    assert read_callgrind(whole).issues == {}
    assert read_callgrind(cut).issues[TRUNCATED] == 1
