"""The secure sum by Shamir's secret sharing; MPyC does the mathematics.

Each owner splits its vector into one piece for each owner present, a random polynomial of the largest degree for every number, so that
all pieces together give the number and all but one say nothing. Each adds up the pieces that it got; these sums are opened, and the
polynomial through them has the sum of all vectors at 0. Of MPyC only the sharing is used (`thresha`, `finfields`): its own network layer
unpickles what others send, and takes any party for the one that it says it is.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TogetherError
from hedgerow.mechanisms.shares import WholeNumbers

PRIME = 2**89 - 1  # sums of a thousand numbers of 64 bits, and noise far beyond that, do not wrap around
WIDTH = 12  # bytes of a number below it
AT_ONCE = 2**15  # numbers in one message

_importing = threading.Lock()


class Exchange(Protocol):
    """Rounds in which each party sends a message to each: a `Meeting`."""

    number: int

    @property
    def present(self) -> list[int]: ...

    def exchange(self, messages: bytes | Mapping[int, bytes], most: int, doing: str) -> dict[int, bytes]: ...


class ShamirSum:
    """One secure sum among the parties of a meeting (`mechanisms.shares.SecureSum`). shares: of noise, that are a whole draw."""

    def __init__(self, meeting: Exchange, shares: int) -> None:
        self._thresha = mpyc("thresha")
        self._field: Any = mpyc("finfields").GF(PRIME)
        self._meeting, self._used = meeting, False
        self.shares = shares
        self.name = f"noise in {self.shares} shares, summed by Shamir's secret sharing (MPyC)"

    def sum(self, numbers: WholeNumbers) -> NDArray[np.int64]:
        """The sum of all owners' vectors, which have the same length; compared at the end, so that all have the same."""
        if self._used:
            raise TogetherError("a secure sum is for one vector: begin a new run for another.")
        self._used = True
        flat = numbers.ravel()
        parts = [self._some(flat[start : start + AT_ONCE]) for start in range(0, flat.size, AT_ONCE)]
        total = np.concatenate([*parts, np.zeros(0, dtype=np.int64)])
        digest = hashlib.sha256(total.tobytes()).digest()
        try:
            theirs = set(self._meeting.exchange(digest, len(digest), "comparing the sums").values())
        except TogetherError:  # somebody left with the sum open: it is what was paid for, whoever else has it
            theirs = {digest}
        if theirs != {digest}:
            raise TogetherError(
                "the owners got different sums, so one of them did not follow the protocol. What was charged stays charged."
            )
        return total.reshape(numbers.shape)

    def _some(self, numbers: WholeNumbers) -> NDArray[np.int64]:
        present, own = self._meeting.present, self._meeting.number
        most = WIDTH * numbers.size
        pieces = self._thresha.np_random_split(self._field, numbers % PRIME, len(present) - 1, len(present))
        messages = {peer: to_bytes(piece) for peer, piece in zip(present, pieces, strict=True)}
        got = self._meeting.exchange(messages, most, "adding up")
        got[own] = messages[own]
        piece = np.sum([from_bytes(got[peer], numbers.size) for peer in present], axis=0) % PRIME
        opened = self._meeting.exchange(to_bytes(piece), most, "opening the sum")
        opened[own] = to_bytes(piece)
        points = [(place, from_bytes(opened[peer], numbers.size)) for place, peer in enumerate(present, start=1)]
        total = self._thresha.np_recombine(self._field, points).value % PRIME
        centred = np.where(total > PRIME // 2, total - PRIME, total)
        limit = np.iinfo(np.int64).max // 2
        return np.array(np.clip(centred, -limit, limit), dtype=np.int64)


def to_bytes(numbers: WholeNumbers) -> bytes:
    return b"".join(int(number).to_bytes(WIDTH, "big") for number in numbers)


def from_bytes(data: bytes, size: int) -> WholeNumbers:
    """So many numbers below the prime from what another party sent."""
    numbers = [int.from_bytes(data[start : start + WIDTH], "big") for start in range(0, len(data), WIDTH)]
    if len(data) != WIDTH * size or max(numbers, default=0) >= PRIME:
        raise TogetherError("a party sent a vector of another length or field. What was charged stays charged.")
    return np.array(numbers, dtype=object)


def mpyc(module: str) -> ModuleType:
    """A module of MPyC. When it is imported it reads the command line of the process and sets up logging: it gets one without words."""
    with _importing:
        words = sys.argv
        try:
            sys.argv = [words[0] if words else "", "--no-log", "--no-uvloop"]
            return importlib.import_module(f"mpyc.{module}")
        except ImportError as error:
            raise TogetherError("counting together needs the package mpyc: pip install 'hedgerow[together]'. Nothing was spent.") from error
        finally:
            sys.argv = words
