"""Exact shares of discrete Laplace noise: so many of them as are declared add up to one draw.

Owners who count together add a share each to their own counts before a secure sum, so that the sum has the noise of one owner. A share
alone is too little noise: it may leave the process only through a `SecureSum`, and is written nowhere. Labels [S7] and [M4] refer to the
theorems in PROOF.md.

Running time depends on the values drawn: no claim is made about timing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.mechanisms.choices import Words
from hedgerow.mechanisms.coins import Coins
from hedgerow.mechanisms.exactmath import uniform_index
from hedgerow.mechanisms.gaussian import geometric
from hedgerow.mechanisms.samplers import BUFFER_BYTES, LARGEST_DRAW, Integers, compiled, discrete_laplace

WholeNumbers = NDArray[Any]  # Python's integers in an array of objects: no share is clipped, so that the sum has exactly its law

MOST_SHARES = 2**10
MOST_IN_KERNEL = 2**53  # times MOST_SHARES is below 2^64: one word decides a step


class SecureSum(Protocol):
    """Adds up one vector of whole numbers of each owner, so that nobody learns more than the sum.  [M4]"""

    @property
    def shares(self) -> int:
        """How many shares of noise add up to a whole draw: owners, less those who may be absent or tell."""

    @property
    def name(self) -> str:
        """What a certificate writes down about it, beside the source of the noise."""

    def sum(self, numbers: WholeNumbers) -> Integers:
        """The sum of all owners' vectors, the same for each. It ends with an error where it cannot be had, and is used once."""


def laplace_share(scale: Fraction, shares: int, size: int, coins: Coins) -> WholeNumbers:
    """`size` independent shares Y = A - B; the sum of `shares` independent ones is discrete Laplace of that scale, exactly.  [S7]

    A and B are negative binomial, E z^A = ((1 - r)/(1 - rz))^(1/shares), r = e^(-1/scale): a geometric number is cut into the lengths of
    the cycles of a uniform permutation, and each length is kept with probability 1/shares.
    """
    if not 1 <= shares <= MOST_SHARES:
        raise ValueError(f"laplace_share: shares must be 1 to {MOST_SHARES}, got {shares}")
    added, taken = _thinned(scale, shares, size, coins), _thinned(scale, shares, size, coins)
    return added - taken


def _thinned(
    scale: Fraction, shares: int, size: int, coins: Coins, most: int = MOST_IN_KERNEL, buffer_words: int = BUFFER_BYTES // 8
) -> WholeNumbers:
    """Negative binomial numbers. Tests open the largest number that the kernel takes, and the words that it gets at once.  [S7]"""
    rest = _geometric_numbers(scale, size, coins)
    large = {int(i): _thin(_whole(int(rest[i]), scale, coins), shares, coins) for i in np.flatnonzero(rest >= most)}
    rest[rest >= most] = 0
    kept = np.zeros(size, dtype=np.int64)
    done = 0
    while done < size:
        words = np.frombuffer(coins.bytes(8 * min(buffer_words, 16 + 4 * (size - done))), dtype=np.uint64)
        done = _thin_kernel(rest, kept, done, shares, words)
    numbers: WholeNumbers = kept.astype(object)
    for i, number in large.items():
        numbers[i] = number
    return numbers


def _geometric_numbers(scale: Fraction, size: int, coins: Coins) -> Integers:
    """G >= 0 with P(G = g) ∝ e^(-g/scale): discrete Laplace draws that are not negative, in their order, clipped as those are.  [S7]"""
    found = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        draws = discrete_laplace(scale, 2 * (size - done) + 16, coins)
        some = draws[draws >= 0][: size - done]
        found[done : done + some.size] = some
        done += some.size
    return found


def _whole(number: int, scale: Fraction, coins: Coins) -> int:
    """A geometric number that may have been clipped, with all that is beyond: it has no memory.  [S7]"""
    return number + geometric(scale, coins) if number == LARGEST_DRAW else number


def _thin(rest: int, shares: int, coins: Coins) -> int:
    """The step of the kernel for numbers of any size.  [S7]"""
    kept = 0
    while rest:
        length, other = divmod(uniform_index(rest * shares, coins), shares)
        kept += 0 if other else length + 1
        rest -= length + 1
    return kept


@compiled
def _thin_kernel(rest: Integers, kept: Integers, done: int, shares: int, words: Words) -> int:
    """Cut rest[done:] until the words run out; how many are finished. One that is not goes on from where it stands.  [S7]"""
    largest_word = np.uint64(0xFFFFFFFFFFFFFFFF)
    parts = np.uint64(shares)
    used = 0
    while done < rest.size:
        while rest[done] > 0:
            if used == words.size:
                return done
            word = words[used]
            used += 1
            choices = np.uint64(rest[done]) * parts
            if word > largest_word - (largest_word % choices + np.uint64(1)) % choices:
                continue  # above the largest multiple: the remainder would not be uniform
            index = word % choices
            length = np.int64(index // parts) + 1
            if index % parts == np.uint64(0):
                kept[done] += length
            rest[done] -= length
        done += 1
    return done
