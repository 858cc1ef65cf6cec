"""Scans entries of ``traceEvents`` from JSON text straight into columns; compiled by numba.

It reads what exporters write at the speed of memory. An entry with unusual values (escapes in a key, a time with an exponent,
null if a number belongs) is *deferred*: ``event.py`` parses it as a whole. Names keep the escapes of the file and are numbered
in a string table.

A malformed entry is damaged. Scanning resumes at the next ``{`` that does not follow a colon: only an entry begins like that.
Text comes in blocks; an entry that crosses a block's end is scanned again with the next block. Arguments that are not read are
skipped by their brackets and strings.

Text is read in words of eight bytes. A key is parsed once: where the text behind a value is what followed this key before, the
next key and its meaning are known.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from overhead_lens.machine_code import jit as _jit
from overhead_lens.readers.kineto import layout
from overhead_lens.readers.kineto.event import ABSENT, COMPLETE, COUNTER, LABEL, MEMORY, MEMORY_EVENT, OTHER
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
_JOINTS = 39  # from here on kept from one entry to the next

_MORE, _BROKEN, _DONE = -1, -2, -3
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _POINT = 34, 92, 44, 58, 45, 46
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _ZERO, _NINE = 123, 125, 91, 93, 48, 57
_MOST_WHOLE = 9_223_372_036_854_774  # microseconds; as ns, below the end of int64
_HEX_DIGITS = 15
_DECIMAL_DIGITS = 18
_US_PLACES, _MILLIONTHS = 3, 6
_MOST_DIGITS = np.array([0, 0, 0, 16, 0, 0, 12])  # before the point, by places
_MOST_DEPTH = 60

_LOW = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BLANKS = np.uint64(0x2020202020202020)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_PAIRS, _FOURS, _EIGHT = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
_TEN, _HUNDRED, _TEN_THOUSAND = np.uint64(10), np.uint64(100), np.uint64(10_000)
_BYTE, _TWO_BYTES, _FOUR_BYTES = np.uint64(8), np.uint64(16), np.uint64(32)
_POWERS = 10 ** np.arange(9)
_NUMBER_ROOM = 32  # bytes: a sign, sixteen digits, a point, eight letters, what ends it; words may reach beyond

# A joint is the text from one value of an object to the next: comma, key, colon, blanks. An exporter writes few joints, in an
# order that hardly changes: ``field`` keeps each, in words and their masks, and the number of the joint that followed it last.
_MASKS, _SIZE_OF_JOINT, _MEANS, _FOLLOWS = 4, 8, 9, 10
_JOINT_FIELDS = 11
_JOINT_WORDS = 4
_JOINT_BYTES = 8 * _JOINT_WORDS
# Joints 0 and 1 are the braces that open an entry and ``args``. Four groups follow: first joints and others, of both objects.
# The first of a group is used for all that are not kept: they are too long, or their key has an escape.
_JOINTS_OF_GROUP = 33
_JOINT_SHIFT = np.uint64(59)
_START_OF_GROUPS = 2


_inline = partial(_jit, inline=True)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _address(_typing: Any, array: Any) -> Any:
    """Address of an array."""
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


def _stores(bits: int) -> Any:
    """Make a function that sets an element of ``bits`` of an array, by the array's address; the caller checks bounds."""

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def store(_typing: Any, _address: Any, _index: Any, _value: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, index, value = arguments
            array = builder.inttoptr(address, ir.PointerType(ir.IntType(bits)))
            builder.store(builder.trunc(value, ir.IntType(bits)), builder.gep(array, [index]))

        return types.void(types.int64, types.int64, types.int64), generate

    return store


_put_byte, _put = map(_stores, (8, 64))


@_inline
def _get(address, index):
    """Element of an array of int64, by the array's address."""
    return np.int64(_load64(address, 8 * index))


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _lowest_bit(_typing: Any, _word: Any) -> Any:
    """Number of the lowest set bit of a uint64 that is not 0."""
    signature = types.int64(types.uint64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@_inline
def _first_bytes(count):
    """Mask of as many bytes of a word."""
    if count <= 0:
        return np.uint64(0)
    return _ALL >> np.uint64(64 - 8 * min(count, 8))


@_inline
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


@_inline
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


@_inline
def _ends_value(letter):
    return letter == _COMMA or letter == _CLOSE or letter == _CLOSE_LIST or letter <= 32


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
        if _ends_value(letter):
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


_is_label, _is_memory_event = map(_named, ("thread_name", MEMORY_EVENT))
# What keys mean: first the codes in the order of layout.py, last its numbers; first numbers of ``args``.
_entry_key = _among("name", "cat", "pid", "tid", "args", "ph", "ts", "dur")
_AN_ARGS, _A_PHASE, _A_TIME = layout.CODE_COUNT, layout.CODE_COUNT + 1, layout.CODE_COUNT + 2
_numbers = ("correlation", "Sequence number", "device", "stream", "External id", "external id")
_arguments_key = _among(*_numbers, *WHOLE, *DECIMAL, *ARGUMENTS, "name")
_A_WORK = len(_numbers)
_A_MEMORY, _A_LABEL = _A_WORK + layout.DETAIL_COUNT, _A_WORK + 2 * layout.DETAIL_COUNT


@_jit
def _decimal(text, begin, end, places):
    """Parse a decimal, quoted or not, its last digits cut off: (understood, value in units of the last of ``places``)."""
    if _byte(text, begin) == _QUOTE:
        begin, end = begin + 1, end - 1
    sign = 1
    if places == _US_PLACES and begin < end and _byte(text, begin) == _MINUS:
        sign = -1
        begin += 1
    whole = 0
    at = begin
    while at < end and _ZERO <= _byte(text, at) <= _NINE:
        whole = whole * 10 + (int(_byte(text, at)) - _ZERO)
        at += 1
        if at - begin > _MOST_DIGITS[places]:
            return False, 0
    if at == begin or whole > _MOST_WHOLE:
        return False, 0
    unit = _POWERS[places]
    value = whole * unit
    if at < end and _byte(text, at) == _POINT:
        at += 1
        first = at
        while at < end and _ZERO <= _byte(text, at) <= _NINE:
            unit //= 10
            value += (int(_byte(text, at)) - _ZERO) * unit
            at += 1
        if at == first:
            return False, 0
    return at == end, sign * value


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


@_inline
def _digits(text, at):
    """Parse the digits that eight letters begin with: (how many, value)."""
    word = _load64(text, at) ^ _ZEROS
    # The lowest bit that is set is exact; those above it may be a carry's.
    marks = ((word + _ABOVE_NINE) | word) & _HIGH
    count = _lowest_bit(marks) >> 3 if marks else 8
    if count == 0:
        return 0, 0
    word <<= np.uint64(64 - 8 * count)
    word = (word * _TEN + (word >> _BYTE)) & _PAIRS
    word = (word * _HUNDRED + (word >> _TWO_BYTES)) & _FOURS
    return count, np.int64((word * _TEN_THOUSAND + (word >> _FOUR_BYTES)) & _EIGHT)


@_inline
def _read_number(text, value, end, places):
    """Scan a value as ``_integer`` or, of some ``places``, ``_decimal`` does: (position behind it, understood, number).

    The position may be ``_MORE`` or ``_BROKEN``. Usual numbers are parsed by words.
    """
    if value + _NUMBER_ROOM <= end:
        negative = int(_byte(text, value) == _MINUS)
        count, number = _digits(text, value + negative)
        if count == 8:
            more, low = _digits(text, value + negative + 8)
            count, number = 8 + more, number * _POWERS[more] + low
        at = value + negative + count
        usual = count > 0
        if places:
            usual &= count <= _MOST_DIGITS[places] and number <= _MOST_WHOLE and (places == _US_PLACES or not negative)
            number *= _POWERS[places]
            if _byte(text, at) == _POINT:
                more, low = _digits(text, at + 1)
                usual &= 0 < more < 8
                number += low * _POWERS[places - more] if more <= places else low // _POWERS[more - places]
                at += 1 + more
        if usual and _ends_value(_byte(text, at)):
            return at, True, -number if negative else number
    at = _skip_value(text, value, end)
    if at < 0:
        return at, False, 0
    understood, number = _decimal(text, value, at, places) if places else _integer(text, value, at)
    return at, understood, number


@_jit
def _is_no_number(text, begin):
    """Whether a value is a word (null, NaN, inf), a list or an object."""
    letter = _byte(text, begin)
    return not (letter == _QUOTE or letter == _MINUS or _ZERO <= letter <= _NINE)


@_jit
def _read_work(text, value, end, field, which):
    """Enter a number that device work says of itself; return the position behind it."""
    at, understood, number = _read_number(text, value, end, _MILLIONTHS if which >= _OCCUPANCY else 0)
    _put(field, _HAS_WORK, 1)
    _put(field, _WORK + which, ABSENT)
    if at < 0 or _is_no_number(text, value):
        return at
    if not understood:
        _put(field, _DEFER, 1)
    _put(field, _WORK + which, max(ABSENT, number))
    return at


@_inline
def _read_memory(text, value, end, field, which):
    """Enter a number of an allocation or release; an unusual one is left to ``memory.py``. Return the position behind it."""
    at, understood, number = _read_number(text, value, end, 0)
    is_size = which == _SIZE
    if not understood or (is_size and (_byte(text, value) == _QUOTE or abs(number) >= MOST_BYTES)):
        _put(field, _DEFER_MEMORY, 1)
    if is_size:
        _put(field, _HAS_SIZE, 1)
    elif (which == _ALLOCATED or which == _RESERVED) and not 0 <= number < MOST_BYTES:
        number = ABSENT
    _put(field, _MEMORY + which, number)
    return at


@_jit
def _is_minus_zero(text, begin, end):
    return end - begin == 2 and _byte(text, begin) == _MINUS and _byte(text, begin + 1) == _ZERO


@_jit
def _parse_joint(text, at, end, field, joint, level):
    """Parse a joint, behind another, of an entry (``level`` 0) or ``args`` (1): (its number, position of the value).

    Instead of a number, ``_DONE`` at the closing brace, with the position behind it; ``_MORE``; ``_BROKEN``.
    """
    begin = at
    at = _skip_blank(text, at, end)
    if at < end and _byte(text, at) == _CLOSE:
        return _DONE, at + 1
    is_first = joint <= 1
    if not is_first:
        if at < end and _byte(text, at) != _COMMA:
            return _BROKEN, at
        at = _skip_blank(text, at + 1, end)
    if at >= end:
        return _MORE, at
    if _byte(text, at) != _QUOTE:
        return _BROKEN, at
    key = at + 1
    closed = _string_end(text, key, end)
    if closed < 0:
        return closed, at
    key_end = closed >> 1
    at = _skip_blank(text, key_end + 1, end)
    if at >= end:
        return _MORE, at
    if _byte(text, at) != _COLON:
        return _BROKEN, at
    at = _skip_blank(text, at + 1, end)
    if at >= end:
        return _MORE, at
    if closed & 1:
        _put(field, _DEFER, 1)
    means = _arguments_key(text, key, key_end) if level else _entry_key(text, key, key_end)
    size = at - begin
    group = _START_OF_GROUPS + (2 * level + is_first) * _JOINTS_OF_GROUP
    if closed & 1 or size > _JOINT_BYTES or begin + _JOINT_BYTES > end:
        _put(field, _JOINTS + group * _JOINT_FIELDS + _MEANS, means)
        return group, at
    hashed = np.uint64(0)
    for number in range(_JOINT_WORDS):
        hashed = (hashed ^ _load64(text, begin + 8 * number) & _first_bytes(size - 8 * number)) * _PRIME
    next_joint = group + 1 + np.int64(hashed >> _JOINT_SHIFT)
    place = _JOINTS + next_joint * _JOINT_FIELDS
    for number in range(_JOINT_WORDS):
        _put(field, place + number, np.int64(_load64(text, begin + 8 * number)))
        _put(field, place + _MASKS + number, np.int64(_first_bytes(size - 8 * number)))
    _put(field, place + _SIZE_OF_JOINT, size)
    _put(field, place + _MEANS, means)
    _put(field, _JOINTS + joint * _JOINT_FIELDS + _FOLLOWS, next_joint)
    return next_joint, at


@_inline
def _next_value(text, at, end, field, joint, level):
    """Find the next value as ``_parse_joint`` does, which is called only for what did not follow the joint the last time."""
    if at < end and _byte(text, at) == _CLOSE:
        return _DONE, at + 1
    guess = _get(field, _JOINTS + joint * _JOINT_FIELDS + _FOLLOWS)
    if guess and at + _JOINT_BYTES < end:
        place = _JOINTS + guess * _JOINT_FIELDS
        other = np.int64(0)
        for number in range(_JOINT_WORDS):
            word = np.int64(_load64(text, at + 8 * number))
            other |= (word ^ _get(field, place + number)) & _get(field, place + _MASKS + number)
        value = at + _get(field, place + _SIZE_OF_JOINT)
        if other == 0 and _byte(text, value) > 32:
            return guess, value
    return _parse_joint(text, at, end, field, joint, level)


@_inline
def _read_arguments(text, at, end, field):
    """Scan the object ``args`` into ``field``; return the position behind it."""
    joint = 1
    at += 1
    while True:
        joint, value = _next_value(text, at, end, field, joint, 1)
        if joint < 0:
            return value if joint == _DONE else joint
        means = _get(field, _JOINTS + joint * _JOINT_FIELDS + _MEANS)
        if means < 0:
            at = _skip_value(text, value, end)
        elif means < _A_WORK:
            number = min(layout.CORRELATION + means, layout.EXTERNAL)  # which has two names
            at, understood, integer = _read_number(text, value, end, 0)
            _put(field, _NUMBER + number, integer)
            if not understood or (number == layout.EXTERNAL and _get(field, _HAS_EXTERNAL)):
                _put(field, _DEFER, 1)
            if number == layout.EXTERNAL:
                _put(field, _HAS_EXTERNAL, 1)
        elif means < _A_MEMORY:
            at = _read_work(text, value, end, field, means - _A_WORK)
        elif means < _A_LABEL:
            at = _read_memory(text, value, end, field, means - _A_MEMORY)
        else:
            at = _skip_value(text, value, end)
            if _byte(text, value) == _QUOTE:
                _put(field, _LABEL, value + 1)
                _put(field, _LABEL_END, at - 1)
            else:
                _put(field, _DEFER, 1)
        if at < 0:
            return at


@_inline
def _read_entry(text, at, end, field):
    """Scan an entry, from its brace on, into ``field``; return the position behind it."""
    for index in range(_JOINTS):
        _put(field, index, 0)
    for index in range(layout.CORRELATION, layout.EXTERNAL + 1):
        _put(field, _NUMBER + index, ABSENT)
    for index in range(layout.DETAIL_COUNT):
        _put(field, _WORK + index, ABSENT)
        _put(field, _MEMORY + index, ABSENT)
    joint = 0
    at += 1
    while True:
        joint, value = _next_value(text, at, end, field, joint, 0)
        if joint < 0:
            return value if joint == _DONE else joint
        means = _get(field, _JOINTS + joint * _JOINT_FIELDS + _MEANS)
        if means >= _A_TIME:
            at, understood, ns = _read_number(text, value, end, _US_PLACES)
            which = means - _A_TIME
            _put(field, _HAS_TS + which, 1)
            _put(field, _NUMBER + layout.START + which, ns)
            if not understood:
                _put(field, _DEFER, 1)
        elif means == _AN_ARGS:
            if _get(field, _NUMBER + layout.ARGS_AT):  # The key occurs twice: its last value counts.
                _put(field, _DEFER, 1)
            if _byte(text, value) == _OPEN:
                at = _read_arguments(text, value, end, field)
                _put(field, _NUMBER + layout.ARGS_AT, value)
                _put(field, _NUMBER + layout.ARGS_SIZE, at - value)
            else:
                at = _skip_value(text, value, end)
        elif layout.PID <= means < layout.CODE_COUNT and _byte(text, value) != _QUOTE:
            at, understood, _ = _read_number(text, value, end, 0)
            if understood and not _is_minus_zero(text, value, at):
                _put(field, _TEXT + 2 * means, value)
                _put(field, _TEXT + 2 * means + 1, at)
            else:
                _put(field, _DEFER, 1)
        elif means >= 0 and _byte(text, value) == _QUOTE:
            closed = _string_end(text, value + 1, end)
            at = (closed >> 1) + 1 if closed > 0 else closed
            if means != _A_PHASE:
                _put(field, _TEXT + 2 * means, value + 1)
                _put(field, _TEXT + 2 * means + 1, at - 1)
            elif at - value == 3:
                _put(field, _PH, _byte(text, value + 1))
            else:
                _put(field, _DEFER, 1)
        else:
            at = _skip_value(text, value, end)
            if means >= 0:
                _put(field, _DEFER, 1)
        if at < 0:
            return at


@_inline
def _first_word(text, begin, size, end):
    """Up to eight bytes from ``begin`` on, the rest zeros."""
    if begin + 8 <= end:
        return _load64(text, begin) & _first_bytes(size)
    word = np.uint64(0)
    for at in range(begin + min(size, 8) - 1, begin - 1, -1):
        word = word << _BYTE | np.uint64(_byte(text, at))
    return word


@_inline
def _hash(text, begin, size, end):
    """Hash of a string; of two of one size, at most eight bytes, never the same."""
    value = (np.uint64(size) * _PRIME ^ _first_word(text, begin, size, end)) * _PRIME
    at = begin + 8
    while at < begin + size:
        # The last word repeats bytes of the one before.
        value = ((value ^ value >> _SHIFT) ^ _load64(text, min(at, begin + size - 8))) * _PRIME
        at += 8
    return np.int64(value ^ value >> _SHIFT)


@_inline
def _same(one, other, size):
    """Whether as many bytes, eight or more, are equal from one address on and from the other."""
    at = 0
    while at < size:
        place = min(at, size - 8)
        if _load64(one, place) != _load64(other, place):
            return False
        at += 8
    return True


@_inline
def _intern(text, begin, close, end, mask, slots, hashes, places, arena, used):
    """Index of a string in the table, which must have room for it.

    The table's arrays are given by their addresses. ``used`` holds the number of strings and of arena bytes.
    """
    size = close - begin
    value = _hash(text, begin, size, end)
    slot = value & mask
    while True:
        number = _get(slots, slot)
        if number < 0:
            break
        is_like = _get(hashes, number) == value and _get(places, 2 * number + 1) == size
        if is_like and (size <= 8 or _same(arena + _get(places, 2 * number), text + begin, size)):
            return number
        slot = (slot + 1) & mask
    number, at = _get(used, 0), _get(used, 1)
    _put(slots, slot, number)
    _put(hashes, number, value)
    _put(places, 2 * number, at)
    _put(places, 2 * number + 1, size)
    for index in range(size):
        _put_byte(arena, at + index, _byte(text, begin + index))
    _put(used, 0, number + 1)
    _put(used, 1, at + size)
    return number


@_inline
def _addresses(slots, hashes, places, arena, used):
    return len(slots) - 1, _address(slots), _address(hashes), _address(places), _address(arena), _address(used)


@_jit
def intern(text, begin, end, slots, hashes, places, arena, used):
    """Index of a string in the table, which must have room for it.

    ``used`` holds the number of strings and of arena bytes.
    """
    return _intern(_address(text), begin, end, len(text), *_addresses(slots, hashes, places, arena, used))


@_jit
def rehash(hashes, count, slots):
    """Enter the strings of a table into empty ``slots``."""
    mask = len(slots) - 1
    for number in range(count):
        slot = hashes[number] & mask
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
def _enter_details(details, counters, row, field, first):
    """Enter what a row says beside its own numbers, unless that is nothing."""
    place = counters[layout.DETAILS]
    details[place, 0] = row
    most = ABSENT
    for which in range(layout.DETAIL_COUNT):
        details[place, 1 + which] = _get(field, first + which)
        most = max(most, _get(field, first + which))
    if most != ABSENT or first == _MEMORY:
        counters[layout.DETAILS] += 1


@_jit
def scan(text, at, end, final, kind, codes, numbers, details, row, field, slots, hashes, places, arena, used, counters):
    """Scan entries of the array from ``at`` on.

    Args:
        text: uint8; valid up to ``end``.
        final: Whether no text follows.
        kind, codes, numbers: int8 ``(n,)``, int32 ``(CODE_COUNT, n)``, int64 ``(NUMBER_COUNT, n)``. Rows are written from
            ``row`` on; ``ARGS_AT`` counts from the start of ``text``.
        details: int64 ``(n, 1 + DETAIL_COUNT)``: a row, and what its arguments say of device work or, of kind ``MEMORY``, of an
            allocation; ``counters[DETAILS]`` are in use.
        field: int64 ``(FIELD_COUNT,)``: scratch space.
        slots, hashes, places, arena, used: The string table.
        counters: int64 ``(COUNTER_COUNT,)``.

    Returns:
        Status (why it stopped), position, and number of rows in use.
    """
    text, fields, table = _address(text), _address(field), _addresses(slots, hashes, places, arena, used)
    while True:
        if counters[layout.LOST]:
            begin = at
            at = _next_entry(text, begin + counters[layout.LOST], end)
            if at >= end:
                at = end if final else _last_letter(text, begin, end)
                counters[layout.LOST] = end - at
                return layout.NEED_TEXT, at, row
            counters[layout.LOST] = 0
        at = _skip_blank(text, at, end)
        if at >= end:
            return layout.NEED_TEXT, at, row
        letter = _byte(text, at)
        if letter == _COMMA:
            counters[layout.STRAY_COMMA] += counters[layout.COMMA]
            counters[layout.COMMA] = 1
            at += 1
            continue
        if letter == _CLOSE_LIST:
            if counters[layout.ENTRIES]:
                counters[layout.STRAY_COMMA] += counters[layout.COMMA]
            return layout.END_OF_ARRAY, at + 1, row
        if row >= len(kind):
            return layout.NEED_ROWS, at, row
        entry = at
        at = _read_entry(text, entry, end, fields) if letter == _OPEN else _skip_value(text, entry, end)
        if at == _MORE and not final:
            return layout.NEED_TEXT, entry, row
        if at < 0 or letter != _OPEN:
            counters[layout.ENTRIES] += 1
            counters[layout.CUT_OFF if at == _MORE else layout.DAMAGED] += 1
            counters[layout.LOST] = int(at < 0)
            counters[layout.COMMA] = 0
            at = max(at, entry)
            continue
        size = field[_LABEL_END] - field[_LABEL]
        for which in range(layout.CODE_COUNT):
            size += field[_TEXT + 2 * which + 1] - field[_TEXT + 2 * which]
        if used[0] + 8 > len(hashes) or used[1] + size > len(arena):
            return layout.NEED_TABLE, entry, row
        counters[layout.ENTRIES] += 1
        counters[layout.COMMA] = 0
        phase = field[_PH]
        unread = phase == 77 and _holds_escape(text, field[_TEXT], field[_TEXT + 1])
        memory = phase == 105 and _is_memory_event(text, field[_TEXT], field[_TEXT + 1])
        unread |= memory and (field[_DEFER_MEMORY] or not field[_HAS_SIZE])
        made = OTHER
        if field[_DEFER] or unread or ((phase == 88 or phase == 67 or memory) and not field[_HAS_TS]):
            made = layout.DEFERRED
            numbers[layout.ARGS_AT, row], numbers[layout.ARGS_SIZE, row] = entry, entry - at
        elif phase == 88:  # X
            made = COMPLETE
            if not field[_HAS_DUR]:
                counters[layout.MISSING_DURATION] += 1
            elif field[_NUMBER + layout.DUR] < 0:
                counters[layout.NEGATIVE_DURATION] += 1
                field[_NUMBER + layout.DUR] = 0
        elif phase == 77 and _is_label(text, field[_TEXT], field[_TEXT + 1]):  # M
            made = LABEL
            field[_TEXT], field[_TEXT + 1] = field[_LABEL], field[_LABEL_END]
            field[_TEXT + 2 * layout.CAT], field[_TEXT + 2 * layout.CAT + 1] = 0, 0
            for which in range(layout.NUMBER_COUNT):
                field[_NUMBER + which] = 0
        elif memory:
            made = MEMORY
            for which in (layout.NAME, layout.CAT):
                field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1] = 0, 0
        elif phase == 67:  # C
            made = COUNTER
        elif phase == 0:
            counters[layout.NO_PHASE] += 1
        elif phase == 66 or phase == 69:  # B, E
            counters[layout.BEGIN_END] += 1
        if made == OTHER:
            continue
        kind[row] = made
        if made != layout.DEFERRED:
            for which in range(layout.CODE_COUNT):
                begin, close = field[_TEXT + 2 * which], field[_TEXT + 2 * which + 1]
                codes[which, row] = _intern(text, begin, close, end, *table)
            for which in range(layout.NUMBER_COUNT):
                numbers[which, row] = field[_NUMBER + which]
        if made == MEMORY:
            _enter_details(details, counters, row, fields, _MEMORY)
        elif made == COMPLETE and field[_HAS_WORK]:
            _enter_details(details, counters, row, fields, _WORK)
        row += 1
