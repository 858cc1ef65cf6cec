"""Ways of damaging a trace: values, keys, entries, bytes, compression."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType

_KEYS = (
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "correlation", "Sequence number", "device", "stream",
    "External id", "external id", "traceEvents", "distributedInfo", "rank", "world_size", "deviceProperties",
    "baseTimeNanoseconds", "with_stack", "profile_memory", "Process Group Name", "Process Group Ranks", "Collective name",
    "schemaVersion", "traceName", "",
)  # fmt: skip
_NUMBERS = (
    "0", "-0", "-0.0", "1", "-1", "1e400000", "1e9999999", "-1e9999999", "1e308", "1e309", "1e-400", "5e-324",
    "1e3", "1E+3", "1e99999999999999999999", "NaN", "-NaN", "Infinity", "-Infinity", "2147483647", "2147483648",
    "4294967295", "4294967296", "9007199254740993", "999999999999999999", "9999999999999999999",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "9223372036854775.807", "9223372036854775.808",
    "-9223372036854775.808", "9223372036854774", "4611686018427387.904", "4611686018427388", "-4611686018427388",
    "3074457345618258", "1782345678901234.567", "0.0001", "0.0009999", ".5", "5.", "01", "-01", "0x10", "0X1F",
    "0b1", "1_000", "+1", "--1", "-", "1.2.3", "1e", "1e+", "12345678901234567", "1234567890123456.7890", "true",
    "false", "null", "9" * 400, "9" * 5_000, "-" + "1" * 4_301, "0." + "1" * 5_000, "1" * 70_000,
)  # fmt: skip
_NAMES = (
    "", " ", "\\u0000", "\\ud800", "\\udc00\\ud800", "\\ud83d\\ude00", "\\u0041", "\\/", "\\x", "\\", "\\u12", "\x00", "\x01\x1f",
    "\n", "\t", "\xff\xfe", "[red]x[/red]", "[/]", "[bold", "</script>", "{n}", "%s", "'; DROP TABLE events; --", "..",
    "\u0663", "\u6f22\u5b57" * 40, "a" * 70_000, "ProfilerStep#0", "ProfilerStep#-1", "ProfilerStep#\u0663",
    "ProfilerStep#99999999999999999999", "ProfilerStep#" + "9" * 5_000, "ProfilerStep#1", "cudaLaunchKernel",
    "cudaGraphLaunch", "hipGraphLaunch", "ncclDevKernel_AllReduce", "ncclx:all_reduce", "Torch-Compiled Region: 0/0",
    "TorchDynamo Cache Lookup", "CompiledFunction", "autograd::engine::evaluate_function: X", "aten::view",
    "aten::empty", "cudaDeviceSynchronize", "cudaMalloc", "thread_name", "process_name", "kernel", "Kernel", "gpu_memcpy",
    "Memset", "cpu_op", "Operator", "cuda_runtime", "Runtime", "cuda_driver", "mtia_runtime", "python_function",
    "user_annotation", "gpu_user_annotation", "overhead", "cuda_sync", "Trace", "X", "M", "B", "E", "i", "s", "f", "C", "x",
    "traceEvents", "0x0", "0xffffffffffffffff", "0xg", "-0x1", "0b11", "0o17", "007", "1e3", "Spans", "stream 7", "-1",
    "\u00b2", "\uff11",
)  # fmt: skip
_SHAPES = (
    "[]", "{}", "[[]]", "[{}]", '{"a": 1}', "[1, 2", "{", "}", "[", "]", ",", ":", '"', '"open', '{"": ""}', '{"args": {}}',
    '{"traceEvents": []}', '[{"ph": "X"}]', '{"name": {"name": []}}', "null", "\ufeff", "//x\n", "undefined", "'x'",
    "[" * 50 + "]" * 50, '{"a":' * 70 + "1" + "}" * 70, "[" * 3_000 + "]" * 3_000, "[" * 3_000, '{"a":' * 2_000,
)  # fmt: skip
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+\w.]+|[][{}:,]')
_WORD = re.compile(rb'"[\w ]+"')
_VALUE = re.compile(rb'("(?:[^"\\]|\\.)*"\s*:\s*)("(?:[^"\\]|\\.)*"|[-+\w.]+)')
_FIELD = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[-+\w.]+|\[[^][{}"]*\]|\{\})\s*,?')
_ENTRY = re.compile(rb'\{\s*"(?:ph|name|args)"')
_BYTES = b'{}[]:,"\\ \n\t\r\x00\x1f\x7f\x80\xbf\xc3\xed\xf0\xffeE+-.0123456789nullNaNtruefalsX'

_ONCE_MORE, _REPLACED, _PACKED = 0.6, 0.3, 0.1
_MOST_BYTES = 128 << 10

Mutation = Callable[[Random, bytes, Sequence[bytes]], bytes]
"""From a source of chance, a trace and other traces to a damaged one."""


def mutated(random: Random, seeds: Sequence[bytes]) -> tuple[bytes, tuple[str, ...]]:
    """A damaged trace and the names of what was done to it, in order."""
    text = random.choice(seeds)
    done: list[str] = []
    while not done or (random.random() < _ONCE_MORE and len(text) < _MOST_BYTES):
        name = "replace_value" if random.random() < _REPLACED else random.choice(tuple(MUTATIONS))
        done.append(name)
        text = MUTATIONS[name](random, text, seeds)[:_MOST_BYTES]
    if random.random() < _PACKED:
        name = random.choice(tuple(CONTAINERS))
        done.append(name)
        text = CONTAINERS[name](random, text, seeds)
    return text, tuple(done)


def _odd(random: Random) -> bytes:
    """A value that no exporter, or hardly any, writes in this place."""
    kind = random.random()
    if kind < 0.45:
        value = random.choice(_NUMBERS)
        value = f'"{value}"' if random.random() < 0.25 else value
    elif kind < 0.85:
        value = '"' + random.choice(_NAMES) + '"'
    else:
        value = random.choice(_SHAPES)
    return value.encode("utf-8" if random.random() < 0.97 else "utf-16", "surrogatepass")


def _value_of(random: Random, text: bytes) -> re.Match[bytes] | None:
    """The key and the value of one field whose key means something to the reader."""
    key = re.escape(random.choice(_KEYS).encode())
    matches = list(re.finditer(rb'("%s"\s*:\s*)("(?:[^"\\]|\\.)*"|[-+\w.]+)' % key, text))
    return random.choice(matches) if matches else None


def _replace_value(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    match = _value_of(random, text)
    return text if match is None else text[: match.start(2)] + _odd(random) + text[match.end(2) :]


def _replace_all_values(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    match = _value_of(random, text)
    if match is None:
        return text
    share, few = random.choice((0.2, 0.5, 1.0)), [_odd(random) for _ in range(random.choice((1, 1, 2, 3)))]

    def value(other: re.Match[bytes]) -> bytes:
        return other[1] + random.choice(few) if random.random() < share else other[0]

    return re.sub(rb'(%s)("(?:[^"\\]|\\.)*"|[-+\w.]+)' % re.escape(match[1]), value, text)


def _swap_values(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    values = list(_VALUE.finditer(text))
    if len(values) < 2:
        return text
    one, other = sorted(random.sample(values, 2), key=re.Match.start)
    return text[: one.start(2)] + other[2] + text[one.end(2) : other.start(2)] + one[2] + text[other.end(2) :]


def _replace_token(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _TOKEN, text)
    return text[:begin] + _odd(random) + text[end:]


def _drop_token(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _TOKEN, text)
    return text[:begin] + text[end:]


def _repeat_token(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _TOKEN, text)
    return text[:end] + text[begin:end] * random.choice((1, 1, 2, 100)) + text[end:]


def _drop_field(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _FIELD, text)
    return text[:begin] + text[end:]


def _repeat_field(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    """The same key once more, perhaps with another value."""
    begin, end = _span(random, _FIELD, text)
    field = text[begin:end]
    key, colon, _value = field.partition(b":")
    again = key + colon + _odd(random) + b"," if random.random() < 0.5 else field
    return text[:begin] + (again + field if random.random() < 0.5 else field + again) + text[end:]


def _rename_key(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _FIELD, text)
    _key, colon, value = text[begin:end].partition(b":")
    name = random.choice(_KEYS if random.random() < 0.8 else _NAMES).encode("utf-8", "surrogatepass")
    return text[:begin] + b'"' + name + b'"' + colon + value + text[end:]


def _escape_key(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    """A letter of a string as its escape: the same for whoever decodes it."""
    begin, end = _span(random, _WORD, text)
    if begin == end:
        return text
    at = random.randrange(begin + 1, end - 1)
    return text[:at] + b"\\u%04x" % text[at] + text[at + 1 :]


def _drop_entries(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _entries(random, text)
    return text[:begin] + text[end:]


def _repeat_entries(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _entries(random, text)
    return text[:end] + text[begin:end] * random.choice((1, 2, 5)) + text[end:]


def _move_entries(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _entries(random, text)
    rest = text[:begin] + text[end:]
    starts = [match.start() for match in _ENTRY.finditer(rest)] or [len(rest)]
    at = random.choice(starts)
    return rest[:at] + text[begin:end] + rest[at:]


def _splice(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    """Entries of another trace among these."""
    other = random.choice(seeds)
    begin, end = _entries(random, other)
    at, _end = _entries(random, text)
    return text[:at] + other[begin:end] + text[at:]


def _cross(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    """The head of this trace and the tail of another."""
    other = random.choice(seeds)
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


def _truncate(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    return text[: random.randrange(len(text) + 1)]


def _behead(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    return text[random.randrange(len(text) + 1) :]


def _flip_bits(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(text)
    for _number in range(random.choice((1, 1, 2, 8, 64)) if text else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _put_bytes(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    at, over = random.randrange(len(text) + 1), random.choice((0, 1, 1, 9))
    new = bytes(random.choice(_BYTES) for _ in range(random.choice((1, 1, 2, 8))))
    return text[:at] + new + text[at + over :]


def _drop_bytes(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at + random.choice((1, 2, 9, 40, 300)) :]


def _repeat_bytes(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    at, size = random.randrange(len(text) + 1), random.choice((1, 2, 9, 40, 300))
    return text[:at] + text[at : at + size] * random.choice((2, 2, 3, 20)) + text[at + size :]


def _append(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    return text + random.choice((b"\n", b"\x00" * 9, b"]", b"}", b"garbage", b',{"ph": "X"}', random.choice(seeds)))


def _blanks(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(random, _TOKEN, text)
    space = random.choice((b" ", b"\n", b"\t", b"\r\n", b"\x0b", b"\x0c", b"\xc2\xa0", b" " * 5_000))
    return text[:begin] + space + text[begin:end] + space + text[end:]


def _encode(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    if random.random() < 0.5:
        return b"\xef\xbb\xbf" + text
    return text.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-32", "latin-1", "utf-7")), "replace")


def _packed(random: Random, text: bytes, _: Sequence[bytes]) -> bytes:
    return gzip.compress(text, random.choice((0, 1, 9)), mtime=0)


def _packed_in_parts(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    at = random.randrange(len(text) + 1)
    between = random.choice((b"", b"", bytes(7), bytes(700), b"\x1f", b"\x1f\x8b", b"x"))
    return (
        _packed(random, text[:at], seeds) + between + _packed(random, text[at:], seeds) + random.choice((b"", between))
    )


def _packed_and_damaged(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    damage = random.choice((_flip_bits, _truncate, _put_bytes, _drop_bytes, _repeat_bytes))
    return damage(random, _packed(random, text, seeds), seeds)


def _packed_twice(random: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    return _packed(random, _packed(random, text, seeds), seeds)


def _span(random: Random, pattern: re.Pattern[bytes], text: bytes) -> tuple[int, int]:
    """Where a random match of the pattern begins and ends; nothing at the end of the text for none."""
    at = random.randrange(len(text) + 1)
    match = pattern.search(text, at) or pattern.search(text)
    return match.span() if match is not None else (len(text), len(text))


def _entries(random: Random, text: bytes) -> tuple[int, int]:
    """From the begin of one entry to the begin of a later one."""
    starts = [match.start() for match in _ENTRY.finditer(text)] or [len(text)]
    first = random.randrange(len(starts))
    last = min(first + random.choice((1, 1, 2, 8)), len(starts) - 1)
    return starts[first], starts[last]


MUTATIONS: Mapping[str, Mutation] = MappingProxyType(
    {
        function.__name__.lstrip("_"): function
        for function in (
            _replace_value, _replace_all_values, _swap_values, _replace_token, _drop_token, _repeat_token,
            _drop_field, _repeat_field, _rename_key, _escape_key, _drop_entries, _repeat_entries, _move_entries, _splice,
            _cross, _truncate, _behead, _flip_bits, _put_bytes, _drop_bytes, _repeat_bytes, _append, _blanks, _encode,
        )
    }
)  # fmt: skip
CONTAINERS: Mapping[str, Mutation] = MappingProxyType(
    {
        function.__name__.lstrip("_"): function
        for function in (_packed, _packed_in_parts, _packed_and_damaged, _packed_twice)
    }
)
