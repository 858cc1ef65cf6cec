"""Scans entries of ``traceEvents`` from JSON text straight into columns; compiled by numba.

It reads what exporters write at the speed of memory. An entry with unusual values (escapes in a key, a time with an exponent,
null if a number belongs) is *deferred*: ``event.py`` parses it as a whole. Names keep the escapes of the file and are numbered
in a string table.

A malformed entry is damaged. Scanning resumes at the next ``{`` that does not follow a colon: only an entry begins like that.
Text comes in blocks; an entry that crosses a block's end is scanned again with the next block. Arguments that are not read are
skipped by their brackets and strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from overhead_lens.machine_code import jit as _jit
from overhead_lens.readers.kineto.event import ABSENT, COMPLETE, COUNTER, LABEL, MEMORY, MEMORY_EVENT, OTHER
from overhead_lens.readers.kineto.layout import (
    ARGS_AT,
    ARGS_SIZE,
    BEGIN_END,
    CAT,
    CODE_COUNT,
    COMMA,
    CORRELATION,
    CUT_OFF,
    DAMAGED,
    DEFERRED,
    DUR,
    END_OF_ARRAY,
    ENTRIES,
    EXTERNAL,
    FIELD_COUNT,
    LOST,
    MISSING_DURATION,
    NAME,
    NEED_ROWS,
    NEED_TABLE,
    NEED_TEXT,
    NEGATIVE_DURATION,
    NO_PHASE,
    NUMBER_COUNT,
    PID,
    SAID,
    SAID_COUNT,
    START,
    STRAY_COMMA,
)
from overhead_lens.readers.kineto.memory import ARGUMENTS, MOST_BYTES
from overhead_lens.readers.kineto.work import DECIMAL, WHOLE

# Fields of the entry being scanned: begin and end of strings, and integers.
_PH, _DEFER, _HAS_TS, _HAS_DUR, _LABEL, _LABEL_END = range(6)
_TEXT = 6  # begin and end of name, cat, pid, tid
_NUMBER = 14  # the numbers above
_HAS_EXTERNAL = 23
_HAS_WORK = 24
_WORK = 25  # what device work says of itself
_BYTES, _GRAPH, _GRAPH_NODE, _OCCUPANCY, _BLOCKS, _WARPS = range(6)
_HAS_SIZE, _DEFER_MEMORY = 31, 32
_MEMORY = 33  # what an allocation or release says
_ADDRESS, _SIZE, _ALLOCATED, _RESERVED, _DEVICE_TYPE, _DEVICE_ID = range(6)

_MORE, _BROKEN = -1, -2
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _POINT = 34, 92, 44, 58, 45, 46
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _ZERO, _NINE = 123, 125, 91, 93, 48, 57
_MOST_WHOLE = 9_223_372_036_854_774  # microseconds; as ns, below the end of int64
_US_DIGITS = 16
_HEX_DIGITS = 15
_DECIMAL_DIGITS = 18
_MILLIONTHS_DIGITS = 12
_MOST_DEPTH = 60

_LOW = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BLANKS = np.uint64(0x2020202020202020)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _address(_typing: Any, array: Any) -> Any:
    """Address of an array of uint8."""
    signature = types.int64(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(array.data, ir.IntType(64))

    return signature, generate


def _loads(bits: int, kind: Any) -> Any:
    """Make a function that loads a little-endian number of ``bits`` from an address and a distance; the caller checks bounds."""

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def load(_typing: Any, _address: Any, _at: Any) -> Any:
        signature = kind(types.int64, types.int64)

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(builder.add(*arguments), ir.PointerType(ir.IntType(bits)))
            word = builder.load(pointer)
            word.align = 1
            return word

        return signature, generate

    return load


_byte = _loads(8, types.uint8)
_load64 = _loads(64, types.uint64)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _lowest_bit(_typing: Any, _word: Any) -> Any:
    """Number of the lowest set bit of a uint64 that is not 0."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@_jit
def _string_end(text, at, end):
    """Find the closing quote: twice its position, plus 1 if the string holds an escape.

    ``at`` is behind the opening quote. Returns ``_MORE`` if the text ends first, ``_BROKEN`` at a line break.
    """
    escaped = 0
    while True:
        marks = np.uint64(0)
        while at + 8 <= end:
            word = _load64(text, at)
            quotes, slashes = word ^ _QUOTES, word ^ _BACKSLASHES
            # The lowest bit that is set is exact; those above it may be a borrow's.
            marks = ((quotes - _LOW) & ~quotes | (slashes - _LOW) & ~slashes | (word - _BLANKS) & ~word) & _HIGH
            if marks:
                at += _lowest_bit(marks) >> 3
                break
            at += 8
        if at >= end:
            return _MORE
        letter = _byte(text, at)
        if letter == _QUOTE:
            return at * 2 + escaped
        if letter == _BACKSLASH:
            escaped = 1
            at += 1
        elif letter == 10:  # JSON allows no line break in a string: its end is missing
            return _BROKEN
        at += 1


@_jit
def _skip_blank(text, at, end):
    while at < end and _byte(text, at) <= 32:
        at += 1
    return at


@_jit
def _letter_before(text, at):
    at -= 1
    while at >= 0 and _byte(text, at) <= 32:
        at -= 1
    return _byte(text, at) if at >= 0 else 0


@_jit
def _skip_value(text, at, end):
    """Position behind a value; ``_MORE`` or ``_BROKEN``."""
    if at >= end:
        return _MORE
    letter = _byte(text, at)
    if letter == _QUOTE:
        closed = _string_end(text, at + 1, end)
        return closed if closed < 0 else (closed >> 1) + 1
    if letter == _OPEN or letter == _OPEN_LIST:
        return _skip_brackets(text, at, end)
    begin = at
    while at < end:
        letter = _byte(text, at)
        if letter == _COMMA or letter == _CLOSE or letter == _CLOSE_LIST or letter <= 32:
            return at if at > begin else _BROKEN
        if letter == _QUOTE or letter == _COLON or letter == _OPEN or letter == _OPEN_LIST:
            return _BROKEN
        at += 1
    return _MORE


@_jit
def _skip_brackets(text, at, end):
    depth = 0
    objects = 0  # one bit per level: an object or a list
    while at < end:
        letter = _byte(text, at)
        if letter == _QUOTE:
            closed = _string_end(text, at + 1, end)
            if closed < 0:
                return closed
            at = (closed >> 1) + 1
            continue
        if letter == _OPEN or letter == _OPEN_LIST:
            if (
                depth > 0
                and depth <= _MOST_DEPTH
                and (objects >> (depth - 1)) & 1
                and _letter_before(text, at) != _COLON
            ):
                return _BROKEN
            if depth < _MOST_DEPTH:
                objects = objects & ~(1 << depth) | (int(letter == _OPEN) << depth)
            depth += 1
        elif letter == _CLOSE or letter == _CLOSE_LIST:
            depth -= 1
            if depth < _MOST_DEPTH and (objects >> depth) & 1 != int(letter == _CLOSE):
                return _BROKEN
            if depth == 0:
                return at + 1
        at += 1
    return _MORE


@_jit
def _holds_escape(text, begin, end):
    """Whether a string has an escape, so that its bytes are not what it says."""
    for at in range(begin, end):
        if _byte(text, at) == _BACKSLASH:
            return True
    return False


def _named(name: str) -> Any:
    """Compile a test whether a text is a name."""
    letters = name.encode()
    size = len(letters)

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def begins(_typing: Any, _address: Any, _at: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(8 * size)
            word = builder.load(builder.inttoptr(builder.add(*arguments), ir.PointerType(kind)))
            word.align = 1
            return builder.icmp_unsigned("==", word, ir.Constant(kind, int.from_bytes(letters, "little")))

        return types.boolean(types.int64, types.int64), generate

    @_jit
    def is_named(text, begin, end):
        return end - begin == size and begins(text, begin)

    return is_named


@_jit
def _nowhere(_text, _begin, _end):
    return -1


def _named_or(is_named: Any, place: int, others: Any) -> Any:
    @_jit
    def place_of(text, begin, end):
        return place if is_named(text, begin, end) else others(text, begin, end)

    return place_of


def _among(*names: str) -> Any:
    """Compile a search for a text among names: its place, -1 for none."""
    place_of = _nowhere
    for place in reversed(range(len(names))):
        place_of = _named_or(_named(names[place]), place, place_of)
    return place_of


_is_args, _is_ph, _is_ts, _is_dur, _is_name = map(_named, ("args", "ph", "ts", "dur", "name"))
_is_label, _is_memory_event = map(_named, ("thread_name", MEMORY_EVENT))
_code = _among("name", "cat", "pid", "tid")  # in the order of the codes in layout.py
_number = _among("correlation", "Sequence number", "device", "stream", "External id", "external id")
_work_number = _among(*WHOLE, *DECIMAL)
_memory_number = _among(*ARGUMENTS)


@_jit
def _decimal(text, begin, end, most_digits, scale):
    """Parse an unsigned decimal, its last digits cut off: (understood, value times ``scale``)."""
    whole = 0
    at = begin
    while at < end and _ZERO <= _byte(text, at) <= _NINE:
        whole = whole * 10 + (int(_byte(text, at)) - _ZERO)
        at += 1
        if at - begin > most_digits:
            return False, 0
    if at == begin or whole > _MOST_WHOLE:
        return False, 0
    value, unit = whole * scale, scale // 10
    if at < end and _byte(text, at) == _POINT:
        at += 1
        first = at
        while at < end and _ZERO <= _byte(text, at) <= _NINE:
            value += (int(_byte(text, at)) - _ZERO) * unit
            unit //= 10
            at += 1
        if at == first:
            return False, 0
    return at == end, value


@_jit
def _nanoseconds(text, begin, end):
    """Parse decimal microseconds, quoted or not: (understood, ns)."""
    if _byte(text, begin) == _QUOTE:
        begin, end = begin + 1, end - 1
    sign = 1
    if begin < end and _byte(text, begin) == _MINUS:
        sign = -1
        begin += 1
    understood, ns = _decimal(text, begin, end, _US_DIGITS, 1000)
    return understood, sign * ns


@_jit
def _integer(text, begin, end):
    """Parse an integer, decimal or quoted decimal or quoted hexadecimal: (understood, value)."""
    quoted = _byte(text, begin) == _QUOTE
    if quoted:
        begin, end = begin + 1, end - 1
    sign = 1
    if begin < end and _byte(text, begin) == _MINUS:
        sign = -1
        begin += 1
    if begin >= end:
        return False, 0
    value = 0
    if quoted and _byte(text, begin) == _ZERO and end - begin > 1:
        if end - begin > 2 + _HEX_DIGITS or end - begin < 3 or _byte(text, begin + 1) | 32 != 120:
            return False, 0
        for at in range(begin + 2, end):
            letter = int(_byte(text, at))
            digit = letter - _ZERO if _ZERO <= letter <= _NINE else (letter | 32) - 87
            if digit < 0 or digit > 15 or (letter > _NINE and digit < 10):
                return False, 0
            value = value * 16 + digit
        return True, sign * value
    if end - begin > _DECIMAL_DIGITS:
        return False, 0
    for at in range(begin, end):
        if _byte(text, at) < _ZERO or _byte(text, at) > _NINE:
            return False, 0
        value = value * 10 + (int(_byte(text, at)) - _ZERO)
    return True, sign * value


@_jit
def _millionths(text, begin, end):
    """Parse a decimal, quoted or not: (understood, millionths)."""
    if _byte(text, begin) == _QUOTE:
        begin, end = begin + 1, end - 1
    return _decimal(text, begin, end, _MILLIONTHS_DIGITS, 1_000_000)


@_jit
def _is_no_number(text, begin):
    """Whether a value is a word (null, NaN, inf), a list or an object."""
    letter = _byte(text, begin)
    return not (letter == _QUOTE or letter == _MINUS or _ZERO <= letter <= _NINE)


@_jit
def _read_work(text, value, at, field, which):
    """Enter a number that device work says of itself."""
    field[_HAS_WORK] = 1
    field[_WORK + which] = ABSENT
    if _is_no_number(text, value):
        return
    understood, number = _millionths(text, value, at) if which >= _OCCUPANCY else _integer(text, value, at)
    if not understood:
        field[_DEFER] = 1
    field[_WORK + which] = max(ABSENT, number)


@_jit
def _read_memory(text, value, at, field, which):
    """Enter a number of an allocation or release; an unusual one is left to ``memory.py``."""
    understood, number = _integer(text, value, at)
    is_size = which == _SIZE
    if not understood or (is_size and (_byte(text, value) == _QUOTE or abs(number) >= MOST_BYTES)):
        field[_DEFER_MEMORY] = 1
    if is_size:
        field[_HAS_SIZE] = 1
    elif (which == _ALLOCATED or which == _RESERVED) and not 0 <= number < MOST_BYTES:
        number = ABSENT
    field[_MEMORY + which] = number


@_jit
def _is_minus_zero(text, begin, end):
    return end - begin == 2 and _byte(text, begin) == _MINUS and _byte(text, begin + 1) == _ZERO


@_jit
def _read_arguments(text, at, end, field):
    """Scan the object ``args`` into ``field``; return the position behind it."""
    at = _skip_blank(text, at + 1, end)
    if at < end and _byte(text, at) == _CLOSE:
        return at + 1
    while True:
        if at >= end:
            return _MORE
        if _byte(text, at) != _QUOTE:
            return _BROKEN
        key = at + 1
        closed = _string_end(text, key, end)
        if closed < 0:
            return closed
        key_end = closed >> 1
        at = _skip_blank(text, key_end + 1, end)
        if at >= end:
            return _MORE
        if _byte(text, at) != _COLON:
            return _BROKEN
        value = _skip_blank(text, at + 1, end)
        at = _skip_value(text, value, end)
        if at < 0:
            return at
        if closed & 1:
            field[_DEFER] = 1
        if _is_name(text, key, key_end):
            if _byte(text, value) == _QUOTE:
                field[_LABEL], field[_LABEL_END] = value + 1, at - 1
            else:
                field[_DEFER] = 1
        work = _work_number(text, key, key_end)
        if work >= 0:
            _read_work(text, value, at, field, work)
        memory = _memory_number(text, key, key_end)
        if memory >= 0:
            _read_memory(text, value, at, field, memory)
        number = _number(text, key, key_end)
        if number >= 0:
            number = min(CORRELATION + number, EXTERNAL)  # which has two names
            understood, integer = _integer(text, value, at)
            field[_NUMBER + number] = integer
            if not understood or (number == EXTERNAL and field[_HAS_EXTERNAL]):
                field[_DEFER] = 1
            if number == EXTERNAL:
                field[_HAS_EXTERNAL] = 1
        at = _skip_blank(text, at, end)
        if at >= end:
            return _MORE
        if _byte(text, at) == _CLOSE:
            return at + 1
        if _byte(text, at) != _COMMA:
            return _BROKEN
        at = _skip_blank(text, at + 1, end)


@_jit
def _read_entry(text, at, end, field):
    """Scan an entry, from its brace on, into ``field``; return the position behind it."""
    for index in range(FIELD_COUNT):
        field[index] = 0
    for index in range(CORRELATION, EXTERNAL + 1):
        field[_NUMBER + index] = ABSENT
    for index in range(SAID_COUNT):
        field[_WORK + index] = ABSENT
        field[_MEMORY + index] = ABSENT
    at = _skip_blank(text, at + 1, end)
    if at < end and _byte(text, at) == _CLOSE:
        return at + 1
    while True:
        if at >= end:
            return _MORE
        if _byte(text, at) != _QUOTE:
            return _BROKEN
        key = at + 1
        closed = _string_end(text, key, end)
        if closed < 0:
            return closed
        key_end = closed >> 1
        at = _skip_blank(text, key_end + 1, end)
        if at >= end:
            return _MORE
        if _byte(text, at) != _COLON:
            return _BROKEN
        value = _skip_blank(text, at + 1, end)
        if value >= end:
            return _MORE
        if _is_args(text, key, key_end):
            if field[_NUMBER + ARGS_AT]:  # Of two the last counts.
                field[_DEFER] = 1
            if _byte(text, value) == _OPEN:
                at = _read_arguments(text, value, end, field)
                field[_NUMBER + ARGS_AT], field[_NUMBER + ARGS_SIZE] = value, at - value
            else:
                at = _skip_value(text, value, end)
            if at < 0:
                return at
        else:
            at = _skip_value(text, value, end)
            if at < 0:
                return at
            quoted = _byte(text, value) == _QUOTE
            if closed & 1:
                field[_DEFER] = 1
            elif _is_ph(text, key, key_end):
                if quoted and at - value == 3:
                    field[_PH] = _byte(text, value + 1)
                else:
                    field[_DEFER] = 1
            elif _is_ts(text, key, key_end):
                understood, ns = _nanoseconds(text, value, at)
                field[_HAS_TS], field[_NUMBER + START] = 1, ns
                if not understood:
                    field[_DEFER] = 1
            elif _is_dur(text, key, key_end):
                understood, ns = _nanoseconds(text, value, at)
                field[_HAS_DUR], field[_NUMBER + DUR] = 1, ns
                if not understood:
                    field[_DEFER] = 1
            else:
                which = _code(text, key, key_end)
                if which >= 0:
                    if quoted:
                        field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1] = value + 1, at - 1
                    elif which >= PID and _integer(text, value, at)[0] and not _is_minus_zero(text, value, at):
                        field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1] = value, at
                    else:
                        field[_DEFER] = 1
        at = _skip_blank(text, at, end)
        if at >= end:
            return _MORE
        if _byte(text, at) == _CLOSE:
            return at + 1
        if _byte(text, at) != _COMMA:
            return _BROKEN
        at = _skip_blank(text, at + 1, end)


@_jit
def _hash(text, begin, end):
    value = np.uint64(end - begin) * _PRIME
    at = begin
    while at + 8 <= end:
        value = (value ^ _load64(text, at)) * _PRIME
        value ^= value >> _SHIFT
        at += 8
    while at < end:
        value = (value ^ np.uint64(_byte(text, at))) * _PRIME
        at += 1
    return value ^ (value >> _SHIFT)


@_jit
def _same(one, other, size):
    """Whether as many bytes are equal from one address on and from the other."""
    at = 0
    while at + 8 <= size:
        if _load64(one, at) != _load64(other, at):
            return False
        at += 8
    while at < size:
        if _byte(one, at) != _byte(other, at):
            return False
        at += 1
    return True


@_jit
def _intern(text, begin, end, slots, hashes, places, arena, used):
    """Index of a string in the table, which must have room for it.

    ``used`` holds the number of strings and of arena bytes.
    """
    value = _hash(text, begin, end)
    mask = len(slots) - 1
    slot = np.int64(value & np.uint64(mask))
    size = end - begin
    while slots[slot] >= 0:
        number = slots[slot]
        same_size = hashes[number] == value and places[number, 1] == size
        if same_size and _same(_address(arena) + places[number, 0], text + begin, size):
            return number
        slot = (slot + 1) & mask
    number = used[0]
    slots[slot] = number
    hashes[number] = value
    places[number, 0], places[number, 1] = used[1], size
    for index in range(size):
        arena[used[1] + index] = _byte(text, begin + index)
    used[0] += 1
    used[1] += size
    return number


@_jit
def intern(text, begin, end, slots, hashes, places, arena, used):
    """Index of a string in the table, which must have room for it.

    ``used`` holds the number of strings and of arena bytes.
    """
    return _intern(_address(text), begin, end, slots, hashes, places, arena, used)


@_jit
def rehash(hashes, count, slots):
    """Enter the strings of a table into empty ``slots``."""
    mask = len(slots) - 1
    for number in range(count):
        slot = np.int64(hashes[number] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@_jit
def _last_letter(text, begin, end):
    """Position of the last letter that is not blank; ``begin`` for none."""
    at = end - 1
    while at > begin and _byte(text, at) <= 32:
        at -= 1
    return at


@_jit
def _next_entry(text, at, end):
    """Position of the next brace that does not follow a colon; ``end`` for none."""
    while at < end:
        if _byte(text, at) == _OPEN and _letter_before(text, at) != _COLON:
            return at
        at += 1
    return end


@_jit
def _say(said, counters, row, field, first):
    """Enter what a row says beside its own numbers, unless that is nothing."""
    place = counters[SAID]
    said[place, 0] = row
    most = ABSENT
    for which in range(SAID_COUNT):
        said[place, 1 + which] = field[first + which]
        most = max(most, field[first + which])
    if most != ABSENT or first == _MEMORY:
        counters[SAID] += 1


@_jit
def scan(text, at, end, final, kind, codes, numbers, said, row, field, slots, hashes, places, arena, used, counters):
    """Scan entries of the array from ``at`` on.

    Args:
        text: uint8; valid up to ``end``.
        final: Whether no text follows.
        kind, codes, numbers: int8 ``(n,)``, int32 ``(CODE_COUNT, n)``, int64 ``(NUMBER_COUNT, n)``. Rows are written from
            ``row`` on; ``ARGS_AT`` counts from the start of ``text``.
        said: int64 ``(n, 1 + SAID_COUNT)``: a row, and what its arguments say of device work or, of kind ``MEMORY``, of an
            allocation; ``counters[SAID]`` are in use.
        field: int64 ``(FIELD_COUNT,)``: scratch space.
        slots, hashes, places, arena, used: The string table.
        counters: int64 ``(COUNTER_COUNT,)``.

    Returns:
        Status (why it stopped), position, and number of rows in use.
    """
    text = _address(text)
    while True:
        if counters[LOST]:
            begin = at
            at = _next_entry(text, begin + counters[LOST], end)
            if at >= end:
                at = end if final else _last_letter(text, begin, end)
                counters[LOST] = end - at
                return NEED_TEXT, at, row
            counters[LOST] = 0
        at = _skip_blank(text, at, end)
        if at >= end:
            return NEED_TEXT, at, row
        letter = _byte(text, at)
        if letter == _COMMA:
            counters[STRAY_COMMA] += counters[COMMA]
            counters[COMMA] = 1
            at += 1
            continue
        if letter == _CLOSE_LIST:
            if counters[ENTRIES]:
                counters[STRAY_COMMA] += counters[COMMA]
            return END_OF_ARRAY, at + 1, row
        if row >= len(kind):
            return NEED_ROWS, at, row
        entry = at
        at = _read_entry(text, entry, end, field) if letter == _OPEN else _skip_value(text, entry, end)
        if at == _MORE and not final:
            return NEED_TEXT, entry, row
        if at < 0 or letter != _OPEN:
            counters[ENTRIES] += 1
            counters[CUT_OFF if at == _MORE else DAMAGED] += 1
            counters[LOST] = int(at < 0)
            counters[COMMA] = 0
            at = max(at, entry)
            continue
        size = field[_LABEL_END] - field[_LABEL]
        for which in range(CODE_COUNT):
            size += field[_TEXT + 2 * which + 1] - field[_TEXT + 2 * which]
        if used[0] + 8 > len(hashes) or used[1] + size > len(arena):
            return NEED_TABLE, entry, row
        counters[ENTRIES] += 1
        counters[COMMA] = 0
        phase = field[_PH]
        unread = phase == 77 and _holds_escape(text, field[_TEXT], field[_TEXT + 1])
        memory = phase == 105 and _is_memory_event(text, field[_TEXT], field[_TEXT + 1])
        unread |= memory and (field[_DEFER_MEMORY] or not field[_HAS_SIZE])
        made = OTHER
        if field[_DEFER] or unread or ((phase == 88 or phase == 67 or memory) and not field[_HAS_TS]):
            made = DEFERRED
            numbers[ARGS_AT, row], numbers[ARGS_SIZE, row] = entry, entry - at
        elif phase == 88:  # X
            made = COMPLETE
            if not field[_HAS_DUR]:
                counters[MISSING_DURATION] += 1
            elif field[_NUMBER + DUR] < 0:
                counters[NEGATIVE_DURATION] += 1
                field[_NUMBER + DUR] = 0
        elif phase == 77 and _is_label(text, field[_TEXT], field[_TEXT + 1]):  # M
            made = LABEL
            field[_TEXT], field[_TEXT + 1] = field[_LABEL], field[_LABEL_END]
            field[_TEXT + 2 * CAT], field[_TEXT + 2 * CAT + 1] = 0, 0
            for which in range(NUMBER_COUNT):
                field[_NUMBER + which] = 0
        elif memory:
            made = MEMORY
            for which in (NAME, CAT):
                field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1] = 0, 0
        elif phase == 67:  # C
            made = COUNTER
        elif phase == 0:
            counters[NO_PHASE] += 1
        elif phase == 66 or phase == 69:  # B, E
            counters[BEGIN_END] += 1
        if made == OTHER:
            continue
        kind[row] = made
        if made != DEFERRED:
            for which in range(CODE_COUNT):
                begin, close = field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1]
                codes[which, row] = _intern(text, begin, close, slots, hashes, places, arena, used)
            for which in range(NUMBER_COUNT):
                numbers[which, row] = field[_NUMBER + which]
        if made == MEMORY:
            _say(said, counters, row, field, _MEMORY)
        elif made == COMPLETE and field[_HAS_WORK]:
            _say(said, counters, row, field, _WORK)
        row += 1
