"""At most k rows of a person: which of them are counted. Who is one person stands in person_ids.py.

Rows of a person are put in order by their codes, then by their class. The j-th of equal ones has a rank, a keyed hash of (codes, class, j),
and the k rows with the smallest ranks are kept. So what is kept follows from one person's rows and the key alone: not from the order of
the table, not from other persons, not from how rows were dealt to batches or machines (PROOF.md, U2). The hash is SipHash-2-4, so that
persons who choose what their rows say cannot choose which are kept. Privacy does not rest on the key.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError

KEY_BYTES = 16
BLOCK = 65_536  # rows that are handed to the compiled loop at a time

Rows = tuple[NDArray[Any], NDArray[np.uint16]]  # codes and classes


# ---------------------------------------------------------------- the rank of a row


@numba.njit(inline="always")
def _turned(x: Any, bits: Any) -> Any:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@numba.njit(nogil=True, cache=True)
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    """One round of SipHash."""
    v0 += v1
    v1 = _turned(v1, 13) ^ v0
    v0 = _turned(v0, 32)
    v2 += v3
    v3 = _turned(v3, 16) ^ v2
    v0 += v3
    v3 = _turned(v3, 21) ^ v0
    v2 += v1
    v1 = _turned(v1, 17) ^ v2
    v2 = _turned(v2, 32)
    return v0, v1, v2, v3


@numba.njit(nogil=True, cache=True)
def _rank(key: Any, codes: Any, label: Any, occurrence: Any) -> Any:
    """SipHash-2-4 of the codes and the class as 16-bit numbers, then of the occurrence as a 64-bit number; the lowest byte first."""
    v0 = key[0] ^ np.uint64(0x736F6D6570736575)
    v1 = key[1] ^ np.uint64(0x646F72616E646F6D)
    v2 = key[0] ^ np.uint64(0x6C7967656E657261)
    v3 = key[1] ^ np.uint64(0x7465646279746573)
    parts = codes.size + 5  # of 16 bits
    word = np.uint64(0)
    for i in range(parts):
        if i < codes.size:
            part = np.uint64(codes[i])
        elif i == codes.size:
            part = np.uint64(label)
        else:
            part = (np.uint64(occurrence) >> np.uint64(16 * (i - codes.size - 1))) & np.uint64(0xFFFF)
        word |= part << np.uint64(16 * (i & 3))
        if i & 3 == 3:
            v3 ^= word
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
            v0 ^= word
            word = np.uint64(0)
    word |= np.uint64((2 * parts) & 0xFF) << np.uint64(56)
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def keyed_hash(key: bytes, codes: NDArray[Any], label: int, occurrence: int) -> int:
    """The rank of the `occurrence`-th (1, 2, …) of a person's rows that have these codes and this class; 64 bits."""
    return int(_rank(_key_words(key), np.asarray(codes), np.uint64(label), np.uint64(occurrence)))


def _key_words(key: bytes) -> NDArray[np.uint64]:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise PlanError(f"key: expected {KEY_BYTES} random bytes, by which the rows of a person are chosen.")
    return np.frombuffer(key, dtype="<u8").astype(np.uint64)


# ---------------------------------------------------------------- rows that come in order


@numba.njit(nogil=True, cache=True)
def _is_above(ranks: Any, places: Any, a: Any, b: Any) -> Any:
    """Whether slot a would go before slot b: a larger rank, or the same and a later place."""
    return ranks[a] > ranks[b] or (ranks[a] == ranks[b] and places[a] > places[b])


@numba.njit(nogil=True, cache=True)
def _raise_last(heap: Any, size: Any, ranks: Any, places: Any) -> None:
    i = size - 1
    while i > 0 and _is_above(ranks, places, heap[i], heap[(i - 1) // 2]):
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2


@numba.njit(nogil=True, cache=True)
def _sink_first(heap: Any, size: Any, ranks: Any, places: Any) -> None:
    i = 0
    while True:
        largest = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < size and _is_above(ranks, places, heap[child], heap[largest]):
                largest = child
        if largest == i:
            return
        heap[i], heap[largest] = heap[largest], heap[i]
        i = largest


HELD, PLACE, OCCURRENCE, LABEL = range(4)  # what `state` holds: rows held, rows seen, and how often the last one, and its class


@numba.njit(nogil=True, cache=True)
def _keep(
    new_person: Any, codes: Any, classes: Any, k: int, key: Any, state: Any, out_codes: Any, out_classes: Any,
    last: Any, heap: Any, ranks: Any, places: Any, held_codes: Any, held_classes: Any
) -> int:  # fmt: skip
    """Go through rows in order; what is decided is written to `out`, and how many rows that are is returned.  [U2]

    The k rows of the present person with the smallest (rank, place) stand in slots 0 to k − 1, a heap of slots over them, the worst first.
    """
    written = 0
    width = codes.shape[1]
    for i in range(classes.size):
        if new_person[i] or state[PLACE] == 0:
            for slot in range(state[HELD]):
                out_codes[written] = held_codes[slot]
                out_classes[written] = held_classes[slot]
                written += 1
            state[HELD] = state[PLACE] = state[OCCURRENCE] = 0
        same = state[OCCURRENCE] > 0 and state[LABEL] == classes[i]
        j = 0
        while same and j < width:
            same = last[j] == codes[i, j]
            j += 1
        if same:
            state[OCCURRENCE] += 1
        else:
            state[OCCURRENCE] = 1
            state[LABEL] = classes[i]
            for j in range(width):
                last[j] = codes[i, j]
        state[PLACE] += 1
        rank = _rank(key, codes[i], np.uint64(classes[i]), np.uint64(state[OCCURRENCE]))
        full = state[HELD] == k
        if full and rank >= ranks[heap[0]]:  # of equal ranks the earlier place is kept
            continue
        slot = heap[0] if full else state[HELD]
        ranks[slot], places[slot] = rank, state[PLACE]
        for j in range(width):
            held_codes[slot, j] = codes[i, j]
        held_classes[slot] = classes[i]
        if full:
            _sink_first(heap, k, ranks, places)
        else:
            heap[slot] = slot
            state[HELD] += 1
            _raise_last(heap, state[HELD], ranks, places)
    return written


class PersonLimit:
    """At most k rows of each person, of rows that come in order: by person, and a person's rows by codes, then class.

    Memory is that of k rows, however many a person has. Any order of a person's rows in which equal ones stand side by side keeps the same
    rows, unless two ranks of 64 bits are the same.
    """

    def __init__(self, k: int, key: bytes) -> None:
        self.k = k
        self._key = _key_words(key)
        self._state = np.zeros(4, dtype=np.int64)
        self._slots: tuple[NDArray[Any], ...] | None = None

    def keep(self, new_person: NDArray[np.bool_], codes: NDArray[Any], classes: NDArray[np.uint16]) -> Rows:
        """The rows that are decided now: those kept of every person who has ended.

        new_person: whether a row's person differs from that of the row before it, in this call or in the one before. The first row of all
                    begins a person in any case.
        """
        if not len(new_person) == len(codes) == len(classes) or codes.ndim != 2:
            raise PlanError("rows: expected a flag, codes and a class for each row.")
        room = self._room(codes, classes)
        most = int(self._state[HELD]) + len(classes)
        out_codes, out_classes = np.empty((most, codes.shape[1]), dtype=codes.dtype), np.empty(most, dtype=np.uint16)
        flags = np.ascontiguousarray(new_person, dtype=np.bool_)
        written = _keep(flags, codes, classes, self.k, self._key, self._state, out_codes, out_classes, *room)
        return out_codes[:written], out_classes[:written]

    def finish(self) -> Rows:
        """The rows kept of the last person. The next row, if there is one, begins another."""
        held = int(self._state[HELD])
        self._state[:] = 0
        if self._slots is None:
            return np.empty((0, 0), dtype=np.uint8), np.empty(0, dtype=np.uint16)
        *_, codes, classes = self._slots
        return codes[:held].copy(), classes[:held].copy()

    def _room(self, codes: NDArray[Any], classes: NDArray[np.uint16]) -> tuple[NDArray[Any], ...]:
        """Slots for as many rows as may be held after these: no more than k."""
        width, held = codes.shape[1], int(self._state[HELD])
        need = min(self.k, held + max(1, len(classes)))
        if self._slots is None or len(self._slots[1]) < need:
            room = min(self.k, max(need, 2 * held))
            made: tuple[NDArray[Any], ...] = (
                np.zeros(width, dtype=codes.dtype),  # the codes of the last row
                np.zeros(room, dtype=np.int64),  # heap of slots
                np.zeros(room, dtype=np.uint64),  # rank of a slot
                np.zeros(room, dtype=np.int64),  # place of a slot among the person's rows
                np.empty((room, width), dtype=codes.dtype),
                np.empty(room, dtype=np.uint16),
            )
            for new, old in zip(made, self._slots or (), strict=False):
                new[: len(old)] = old
            self._slots = made
        return self._slots


# ---------------------------------------------------------------- rows in memory


@numba.njit(nogil=True, cache=True)
def _is_after(codes: Any, classes: Any, a: Any, b: Any) -> Any:
    for j in range(codes.shape[1]):
        if codes[a, j] != codes[b, j]:
            return codes[a, j] > codes[b, j]
    return classes[a] > classes[b]


@numba.njit(nogil=True, cache=True)
def _sort_each(order: Any, starts: Any, stops: Any, codes: Any, classes: Any) -> None:
    """The rows of each person in the order of their codes, then class: heapsort, in place, at its best and worst n·log n."""
    for g in range(starts.size):
        first, size = starts[g], stops[g] - starts[g]
        begin = size // 2
        while size > 1:
            if begin > 0:
                begin -= 1
            else:
                size -= 1
                order[first], order[first + size] = order[first + size], order[first]
            i = begin
            while True:
                child = 2 * i + 1
                if child >= size:
                    break
                if child + 1 < size and _is_after(codes, classes, order[first + child + 1], order[first + child]):
                    child += 1
                if not _is_after(codes, classes, order[first + child], order[first + i]):
                    break
                order[first + i], order[first + child] = order[first + child], order[first + i]
                i = child


def limited(persons: NDArray[np.int64], codes: NDArray[Any], classes: NDArray[np.uint16], k: int, key: bytes) -> Rows:
    """The codes and classes of at most k rows of each person, of rows in any order. `persons` has a number for each (`person_numbers`)."""
    limit = PersonLimit(k, key)
    if not len(classes):
        return codes, classes
    order = np.argsort(persons, kind="stable")
    sorted_persons = persons[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_persons[1:] != sorted_persons[:-1]]))
    sizes = np.diff(np.append(starts, len(order)))
    many = sizes > k
    if not many.any():
        return codes, classes
    crowded = np.repeat(many, sizes)
    few, order = order[~crowded], order[crowded]
    sizes = sizes[many]
    stops = np.cumsum(sizes)
    starts = stops - sizes
    _sort_each(order, starts, stops, codes, classes)
    new_person = np.zeros(len(order), dtype=bool)
    new_person[starts] = True
    kept: list[Rows] = [(codes[few], classes[few])]
    for i in range(0, len(order), BLOCK):
        rows = order[i : i + BLOCK]
        kept.append(limit.keep(new_person[i : i + BLOCK], codes[rows], classes[rows]))
    kept.append(limit.finish())
    return np.concatenate([part for part, _ in kept]), np.concatenate([part for _, part in kept])
