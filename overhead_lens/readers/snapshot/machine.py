"""Runs a pickle's opcodes of plain data over a memory snapshot and keeps only what an analysis needs; compiled by numba.

A pickle is a program for a stack machine (``pickletools``). Python's own machine can call anything and makes an object of every
value: of a snapshot of 1 GB some 5 GB. This one knows no opcode that imports or calls; it stops there. What it makes is a row of
integers for each event, block, segment and frame of the snapshot. Texts stay in the file: a value is where one lies.
"""

from __future__ import annotations

import numpy as np

from overhead_lens.machine_code import jit as _jit

# Status that `run` returns.
DONE, NEED_ROOM, REFUSED, DAMAGED, PAUSED = range(5)

WORDS = (
    "device_traces", "segments", "action", "addr", "size", "time_us", "frames", "filename", "line", "name", "address",
    "requested_size", "state", "total_size", "blocks", "device", "active_allocated", "alloc", "free_requested",
    "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
)  # fmt: skip
"""Keys and values that mean something; the numbers below are places in it."""
(
    _TRACES, _SEGMENTS, _ACTION, _ADDR, _SIZE, _TIME, _FRAMES, _FILENAME, _LINE, _NAME, _ADDRESS,
    _REQUESTED, _STATE, _TOTAL, _BLOCKS, _DEVICE, ALLOCATED, ALLOC, FREE_REQUESTED,
    FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP,
) = range(len(WORDS))  # fmt: skip

# What a value on the stack is; a text that is word W has the tag _WORD + W.
_OTHER, _INT, _TEXT, _LIST, _DICT, _EVENT, _BLOCK, _SEGMENT, _FRAME, _STACK = range(10)
_WORD = 32

# Tables of rows, with their columns. The owner of a row is the list that holds it: its place in the memo.
EVENTS, BLOCKS, SEGMENTS, FRAMES, STACKS, STACK_FRAMES, MEMBERS = range(7)
EVENT_ACTION, EVENT_ADDRESS, EVENT_SIZE, EVENT_TIME, EVENT_STACK, EVENT_OWNER = range(6)
BLOCK_SIZE, BLOCK_STATE, BLOCK_OWNER = range(3)
SEGMENT_SIZE, SEGMENT_DEVICE, SEGMENT_BLOCKS = range(3)
FRAME_FILE, FRAME_LINE, FRAME_NAME = range(3)
STACK_FIRST, STACK_COUNT, STACK_HASH = range(3)
MEMBER_OF, MEMBER = range(2)
WIDTHS = (6, 3, 3, 3, 3, 1, 2)

# State that outlives a pause.
POSITION, DEPTH, MARKS, MEMO, TRACES, SEGMENTS_LIST, COUNTS = 0, 1, 2, 3, 4, 5, 6
STATE_SIZE = COUNTS + len(WIDTHS)

STACK_DEPTH = 1 << 16

LENGTH_BITS = 20
_MOST_LENGTH = (1 << LENGTH_BITS) - 1


@_jit
def _little(text, at, size):
    """Little-endian integer without a sign."""
    value = 0
    for index in range(size):
        value |= np.int64(text[at + index]) << (8 * index)
    return value


@_jit
def _signed(text, at, size):
    value = _little(text, at, size)
    if 0 < size < 8 and text[at + size - 1] >= 128:
        value -= np.int64(1) << (8 * size)
    return value


@_jit
def _word(text, begin, size, letters, ends):
    """Number of the word at a position; -1 for none."""
    first = 0
    for word in range(len(ends)):
        if ends[word] - first == size:
            same = True
            for index in range(size):
                if text[begin + index] != letters[first + index]:
                    same = False
                    break
            if same:
                return word
        first = ends[word]
    return -1


@_jit
def _finish_dict(tags, values, first, last, state, events, blocks, segments, frames):
    """Make a row of the keys and values between two places of the stack: tag and value of the dictionary."""
    has = 0
    action, state_word, time, stack, device, holds = -1, -1, -1, -1, 0, -1
    address, size, requested, total, line, file_at, name_at = 0, 0, -1, 0, 0, -1, -1
    for at in range(first, last - 1, 2):
        word = tags[at] - _WORD
        if word < 0:
            continue
        tag, value = tags[at + 1], values[at + 1]
        is_int = tag == _INT
        is_text = tag == _TEXT or tag >= _WORD
        has |= np.int64(1) << word
        if word == _TRACES and tag == _LIST:
            state[TRACES] = value
        elif word == _SEGMENTS and tag == _LIST:
            state[SEGMENTS_LIST] = value
        elif word == _ACTION and tag >= _WORD:
            action = tag - _WORD
        elif word == _STATE and tag >= _WORD:
            state_word = tag - _WORD
        elif (word == _ADDR or word == _ADDRESS) and is_int:
            address = value
        elif word == _SIZE and is_int:
            size = value
        elif word == _REQUESTED and is_int:
            requested = value
        elif word == _TOTAL and is_int:
            total = value
        elif word == _TIME and is_int:
            time = value
        elif word == _LINE and is_int:
            line = value
        elif word == _DEVICE and is_int:
            device = value
        elif word == _FRAMES and tag == _STACK:
            stack = value
        elif word == _FILENAME and is_text:
            file_at = value
        elif word == _NAME and is_text:
            name_at = value
        elif word == _BLOCKS and tag == _LIST:
            holds = value
    if has >> _ACTION & 1 and has >> _SIZE & 1:
        row = state[COUNTS + EVENTS]
        events[row, EVENT_ACTION], events[row, EVENT_ADDRESS], events[row, EVENT_SIZE] = action, address, size
        events[row, EVENT_TIME], events[row, EVENT_STACK], events[row, EVENT_OWNER] = time, stack, -1
        state[COUNTS + EVENTS] += 1
        return _EVENT, row
    if has >> _TOTAL & 1 and has >> _BLOCKS & 1:
        row = state[COUNTS + SEGMENTS]
        segments[row, SEGMENT_SIZE], segments[row, SEGMENT_DEVICE], segments[row, SEGMENT_BLOCKS] = total, device, holds
        state[COUNTS + SEGMENTS] += 1
        return _SEGMENT, row
    if has >> _STATE & 1 and has >> _SIZE & 1:
        row = state[COUNTS + BLOCKS]
        blocks[row, BLOCK_SIZE] = requested if requested >= 0 else size
        blocks[row, BLOCK_STATE], blocks[row, BLOCK_OWNER] = state_word, -1
        state[COUNTS + BLOCKS] += 1
        return _BLOCK, row
    if has >> _FILENAME & 1 and has >> _NAME & 1:
        row = state[COUNTS + FRAMES]
        frames[row, FRAME_FILE], frames[row, FRAME_LINE], frames[row, FRAME_NAME] = file_at, line, name_at
        state[COUNTS + FRAMES] += 1
        return _FRAME, row
    return _OTHER, 0


@_jit
def _finish_stack(tags, values, first, last, state, stacks, stack_frames, slots):
    """Number of the stack of frames between two places; equal stacks have one. -1 where one is not a frame."""
    for at in range(first, last):
        if tags[at] != _FRAME:
            return -1
    code = np.uint64(last - first)
    for at in range(first, last):
        code = (code ^ np.uint64(values[at] + 1)) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    mask = len(slots) - 1
    slot = np.int64(code & np.uint64(mask))
    while slots[slot] >= 0:
        known = slots[slot]
        if stacks[known, STACK_HASH] == np.int64(code) and stacks[known, STACK_COUNT] == last - first:
            same = True
            for at in range(first, last):
                if stack_frames[stacks[known, STACK_FIRST] + at - first, 0] != values[at]:
                    same = False
                    break
            if same:
                return known
        slot = (slot + 1) & mask
    number, begin = state[COUNTS + STACKS], state[COUNTS + STACK_FRAMES]
    slots[slot] = number
    stacks[number, STACK_FIRST], stacks[number, STACK_COUNT], stacks[number, STACK_HASH] = (
        begin,
        last - first,
        np.int64(code),
    )
    for at in range(first, last):
        stack_frames[begin + at - first, 0] = values[at]
    state[COUNTS + STACKS] += 1
    state[COUNTS + STACK_FRAMES] += last - first
    return number


@_jit
def _fill_list(tags, values, owner, first, last, state, events, blocks, members):
    """Note which list holds the events, blocks and lists between two places of the stack."""
    for at in range(first, last):
        if tags[at] == _EVENT:
            events[values[at], EVENT_OWNER] = owner
        elif tags[at] == _BLOCK:
            blocks[values[at], BLOCK_OWNER] = owner
        elif tags[at] == _LIST:
            row = state[COUNTS + MEMBERS]
            members[row, MEMBER_OF], members[row, MEMBER] = owner, values[at]
            state[COUNTS + MEMBERS] += 1


@_jit
def rehash(stacks, count, slots):
    """Enter the stacks into empty ``slots``."""
    mask = len(slots) - 1
    for number in range(count):
        slot = np.int64(np.uint64(stacks[number, STACK_HASH]) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@_jit
def _literal(opcode):
    """Sizes of an opcode that pushes one value: (bytes of a length that follows, bytes of the value); -1 for any other."""
    if opcode == 0x8C or opcode == 0x55 or opcode == 0x43 or opcode == 0x8A:  # short text, string, bytes, integer
        return 1, -1
    if opcode == 0x58 or opcode == 0x54 or opcode == 0x42 or opcode == 0x8B:  # the same, long
        return 4, -1
    if opcode == 0x8D or opcode == 0x8E or opcode == 0x96:  # longer
        return 8, -1
    if opcode == 0x4A:  # integers of four, one and two bytes
        return 0, 4
    if opcode == 0x4B:
        return 0, 1
    if opcode == 0x4D:
        return 0, 2
    if opcode == 0x47:  # float
        return 0, 8
    if opcode == 0x4E or opcode == 0x88 or opcode == 0x89:  # None, True, False
        return 0, 0
    return -1, -1


@_jit
def run(
    text,
    until,
    state,
    tags,
    values,
    marks,
    memo_tags,
    memo_values,
    events,
    blocks,
    segments,
    frames,
    stacks,
    stack_frames,
    members,
    slots,
    letters,
    ends,
):
    """Run opcodes until the position ``until``, or until a table is full.

    Args:
        text: uint8, the whole file.
        state: int64 ``(STATE_SIZE,)``.
        tags, values, marks: The stack, and the places of its marks.
        memo_tags, memo_values: Values that can be fetched again.
        events, blocks, segments, frames, stacks, stack_frames, members: The tables.
        slots: Numbers of stacks by hash, -1 for none; at least twice as many as stacks.
        letters, ends: Of ``WORDS``.

    Returns:
        Status.
    """
    size = len(text)
    at, depth, mark_count, memo_count = state[POSITION], state[DEPTH], state[MARKS], state[MEMO]
    status = DAMAGED
    while True:
        if at >= size or depth + 4 > len(tags) or depth < 0 or mark_count + 1 > len(marks):
            break
        if at >= until:
            status = PAUSED
            break
        if (
            memo_count + 2 > len(memo_tags)
            or state[COUNTS + EVENTS] + 2 > len(events)
            or state[COUNTS + BLOCKS] + 2 > len(blocks)
            or state[COUNTS + SEGMENTS] + 2 > len(segments)
            or state[COUNTS + FRAMES] + 2 > len(frames)
            or state[COUNTS + STACKS] * 2 + 4 > len(slots)
            or state[COUNTS + STACKS] + 2 > len(stacks)
            or state[COUNTS + STACK_FRAMES] + len(tags) > len(stack_frames)
            or state[COUNTS + MEMBERS] + len(tags) > len(members)
        ):
            status = NEED_ROOM
            break
        opcode = text[at]
        length_bytes, body = _literal(opcode)
        if length_bytes >= 0:
            if at + 1 + length_bytes > size:
                break
            if body < 0:
                body = _little(text, at + 1, length_bytes)
            begin = at + 1 + length_bytes
            if body < 0 or body > size - begin:
                break
            tags[depth], values[depth] = _OTHER, 0
            if opcode == 0x8C or opcode == 0x58 or opcode == 0x8D:
                word = _word(text, begin, body, letters, ends)
                tags[depth] = _TEXT if word < 0 else _WORD + word
                values[depth] = begin << LENGTH_BITS | min(body, _MOST_LENGTH)
            elif opcode == 0x4A:
                tags[depth], values[depth] = _INT, _signed(text, begin, 4)
            elif opcode == 0x4B or opcode == 0x4D:
                tags[depth], values[depth] = _INT, _little(text, begin, body)
            elif (opcode == 0x8A or opcode == 0x8B) and body <= 8:
                tags[depth], values[depth] = _INT, _signed(text, begin, body)
            depth += 1
            at = begin + body
        elif opcode == 0x68 or opcode == 0x6A:  # fetch
            width = 1 if opcode == 0x68 else 4
            if at + 1 + width > size:
                break
            place = _little(text, at + 1, width)
            if place >= memo_count:
                break
            tags[depth], values[depth] = memo_tags[place], memo_values[place]
            depth += 1
            at += 1 + width
        elif opcode == 0x94 or opcode == 0x71 or opcode == 0x72:  # keep
            width = 0 if opcode == 0x94 else 1 if opcode == 0x71 else 4
            if at + 1 + width > size or depth < 1:
                break
            place = memo_count if width == 0 else _little(text, at + 1, width)
            if place > memo_count:
                break
            if tags[depth - 1] == _LIST or tags[depth - 1] == _DICT:
                values[depth - 1] = place
            memo_tags[place], memo_values[place] = tags[depth - 1], values[depth - 1]
            memo_count = max(memo_count, place + 1)
            at += 1 + width
        elif opcode == 0x28:  # mark
            marks[mark_count] = depth
            mark_count += 1
            at += 1
        elif opcode == 0x7D or opcode == 0x5D or opcode == 0x29 or opcode == 0x8F:  # new dict, list, tuple, set
            tags[depth] = _DICT if opcode == 0x7D else _LIST if opcode == 0x5D else _OTHER
            values[depth] = -1
            depth += 1
            at += 1
        elif opcode in (0x73, 0x75, 0x61, 0x65, 0x90):  # set one item, set items, append one, append, add
            alone = opcode == 0x73 or opcode == 0x61
            if not alone and mark_count < 1:
                break
            first = marks[mark_count - 1] if not alone else depth - (2 if opcode == 0x73 else 1)
            if first < 1 or first > depth:
                break
            mark_count -= 0 if alone else 1
            place = values[first - 1]
            if opcode == 0x73 or opcode == 0x75:
                if tags[first - 1] == _DICT:
                    tag, value = _finish_dict(tags, values, first, depth, state, events, blocks, segments, frames)
                    if tag != _OTHER:
                        tags[first - 1], values[first - 1] = tag, value
                        if place >= 0:
                            memo_tags[place], memo_values[place] = tag, value
            elif tags[first - 1] == _LIST and depth > first:
                if tags[first] == _FRAME:
                    number = _finish_stack(tags, values, first, depth, state, stacks, stack_frames, slots)
                    tags[first - 1], values[first - 1] = _STACK, number
                    if place >= 0:
                        memo_tags[place], memo_values[place] = _STACK, number
                else:
                    _fill_list(tags, values, place, first, depth, state, events, blocks, members)
            depth = first
            at += 1
        elif opcode == 0x74 or opcode == 0x6C or opcode == 0x64 or opcode == 0x91 or opcode == 0x31:  # close a mark
            if mark_count < 1:
                break
            mark_count -= 1
            depth = marks[mark_count]
            if opcode != 0x31:
                tags[depth], values[depth] = _OTHER, 0
                depth += 1
            at += 1
        elif opcode == 0x85 or opcode == 0x86 or opcode == 0x87:  # tuple of one, two, three
            depth -= opcode - 0x84
            if depth < 0:
                break
            tags[depth], values[depth] = _OTHER, 0
            depth += 1
            at += 1
        elif opcode == 0x30:  # drop
            depth -= 1
            at += 1
        elif opcode == 0x32 and depth >= 1:  # again
            tags[depth], values[depth] = tags[depth - 1], values[depth - 1]
            depth += 1
            at += 1
        elif opcode == 0x80:  # protocol
            at += 2
        elif opcode == 0x95:  # frame
            at += 9
        elif opcode == 0x2E:  # end
            status = DONE
            break
        else:
            # Import, call, build, extension, persistent, and the textual opcodes of protocol 0.
            if opcode in (0x63, 0x93, 0x52, 0x62, 0x69, 0x6F, 0x81, 0x92, 0x82, 0x83, 0x84, 0x50, 0x51, 0x97, 0x98):
                status = REFUSED
            break
    state[POSITION], state[DEPTH], state[MARKS], state[MEMO] = at, depth, mark_count, memo_count
    return status
