"""Secret randomness: the one place where bits for noise come from.

Nothing else in the package may draw bits for noise. Public choices (which attribute, which order) use
`random_state` and never these coins; noise uses these coins and never `random_state`.
"""

import builtins
import hashlib
import os
from typing import Protocol


class Coins(Protocol):
    """A source of independent fair bits."""

    @property
    def secret(self) -> bool:
        """False if anyone could predict the bits: whatever they touch has no privacy, and must say so."""

    @property
    def name(self) -> str:
        """What a release writes down about the source. Never a seed."""

    def bytes(self, n: int) -> builtins.bytes:
        """`n` fresh random bytes, never handed out before."""


class SystemCoins:
    """The operating system's cryptographic generator. It has no seed that could be kept or replayed."""

    secret = True
    name = "system randomness (os.urandom)"

    def bytes(self, n: int) -> builtins.bytes:
        return os.urandom(n)


class SeededCoins:
    """Reproducible coins FOR TESTS ONLY: whoever knows the seed can remove the noise.

    Block number c of the stream is SHAKE-256(seed, c), one block for each call. The object holds its seed, so
    it must not be stored or pickled with a model; `secret` is False so that a release can refuse or mark it.
    """

    secret = False
    name = "seeded test coins: no privacy"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._blocks_used = 0

    def bytes(self, n: int) -> builtins.bytes:
        block = hashlib.shake_256(f"hedgerow test coins {self._seed} {self._blocks_used}".encode())
        self._blocks_used += 1
        return block.digest(n)


SYSTEM = SystemCoins()


def random_name(coins: Coins) -> str:
    """A name for a counted table: fresh bits, independent of its rows and of its noise."""
    return coins.bytes(16).hex()
