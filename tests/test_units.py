from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.units import format_bytes, format_ns, format_rate, format_signed_ns, ns_from_us_text, round_to_sum


@given(ns=st.integers(0, 2**62))
def test_decimal_microseconds_are_exact(ns: int) -> None:
    assert ns_from_us_text(f"{ns // 1000}.{ns % 1000:03d}") == ns


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e40", "abc", "1.2.3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ns_from_us_text(text)


@given(weights=st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any), total=st.integers(0, 10**12))
def test_rounding_keeps_the_sum_and_stays_within_one(weights: list[int], total: int) -> None:
    values = [weight * total / sum(weights) for weight in weights]
    rounded = round_to_sum(values, total)
    assert sum(rounded) == total
    assert all(abs(whole - value) < 1.001 for whole, value in zip(rounded, values, strict=True))


def test_rounding_refuses_what_does_not_sum() -> None:
    with pytest.raises(ValueError, match="cannot be rounded to 10"):
        round_to_sum([1.0, 2.0], 10)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (3, "3 ns"),
        (0.034, "0.03 ns"),
        (1.46, "1.5 ns"),
        (87.4, "87 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (12_480, "12.48 µs"),
        (123_456, "123.5 µs"),
        (70_400_000, "70.40 ms"),
        (1_250_000_000, "1.25 s"),
        (-2_500, "-2.50 µs"),
    ],
)
def test_durations_for_people(ns: float, text: str) -> None:
    assert format_ns(ns) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (263_168, "263 kB"), (1_048_576, "1.05 MB"), (99_950_000, "100 MB")]
)
def test_sizes_in_three_digits(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("per_s", "unit", "text"),
    [(8.5e10, "B", "85.0 GB/s"), (4.406e10, "FLOP", "44.1 GFLOP/s"), (9.996e12, "B", "10.0 TB/s")],
)
def test_rates_in_three_digits(per_s: float, unit: str, text: str) -> None:
    assert format_rate(per_s, unit) == text


@pytest.mark.parametrize(("ns", "text"), [(1_200, "+1.20 µs"), (-35, "-35 ns"), (0, "+0 ns"), (-2e6, "-2.00 ms")])
def test_a_difference_always_has_its_sign(ns: float, text: str) -> None:
    assert format_signed_ns(ns) == text
