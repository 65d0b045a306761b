"""Known answers: from the same coins every sampler draws the same numbers, on every machine, compiled or not.

Each draw follows from the bits alone, since floats decide only what exact arithmetic decides alike. So whatever is changed in a sampler
and changes a draw, or how many bits it takes, is seen here. That the distributions are right is shown in test_sampler_distributions.py
and test_gaussian_distribution.py. Whoever means to change the use of bits prints the new answers with
`python tests/mechanisms/test_known_draws.py`, after those two have passed.
"""

from __future__ import annotations

import builtins
import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hedgerow.mechanisms.choices import GUARD, _choose, exponential_mechanism, permute_and_flip
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.mechanisms.exactmath import bernoulli_exp, uniform_index
from hedgerow.mechanisms.gaussian import _discrete_gaussian, geometric
from hedgerow.mechanisms.samplers import _discrete_laplace
from hedgerow.mechanisms.shares import _thinned, laplace_share


def laplace(coins: SeededCoins, scale: Fraction, size: int, *tuning: Any) -> Any:
    return _discrete_laplace(scale, size, coins, *tuning)


def gaussian(coins: SeededCoins, sigma_squared: Fraction, size: int, guard: float = GUARD, block: int = 50) -> Any:
    return _discrete_gaussian(sigma_squared, size, coins, guard, block)


def geometrics(coins: SeededCoins, scale: Fraction) -> Any:
    return [geometric(scale, coins) for _ in range(60)]


def choice(coins: SeededCoins, rate: Fraction, set_aside: bool, guard: float, buffer_words: int, spread: int = 10) -> Any:
    made = np.frombuffer(SeededCoins(0).bytes(8 * 2 * 150 * 6), dtype="<i8").astype(np.int64).reshape(2, 150, 6)
    scores, allowed = made[0] % (2 * spread) - spread, made[1] % 10 < 7
    allowed[:, 2] |= ~allowed.any(axis=1)
    scores[0] = [2**63 - 1, -(2**63), 2**63 - 1 - 2**53, 2**63 - 2**53, 0, 1]
    return _choose(scores, allowed, rate, coins, set_aside, guard, buffer_words)


def share(coins: SeededCoins, scale: Fraction, shares: int, size: int) -> Any:
    return laplace_share(scale, shares, size, coins)


def half(coins: SeededCoins, scale: Fraction, shares: int, size: int, *tuning: int) -> Any:
    return _thinned(scale, shares, size, coins, *tuning)


def few(coins: SeededCoins, rate: Fraction) -> Any:
    """Two rows at a time, so that the words for both do not always suffice for the first."""
    scores, allowed = np.tile(np.arange(6), (2, 1)), np.ones((2, 6), dtype=bool)
    return np.concatenate([_choose(scores, allowed, rate, coins, set_aside=False) for _ in range(300)])


def public(coins: SeededCoins, mechanism: Callable[..., Any]) -> Any:
    scores = np.arange(400, dtype=np.int64).reshape(100, 4) * 7 % 13
    return mechanism(scores, np.ones(scores.shape, dtype=bool), Fraction(1, 5), coins)


def coin(coins: SeededCoins) -> Any:
    return [bernoulli_exp(Fraction(i, 40), coins) for i in range(200)]


def index(coins: SeededCoins) -> Any:
    return [uniform_index(n, coins) for n in (1, 2, 3, 5, 127, 128, 129, 255, 256, 257, 1000, 2**16 - 1, 2**16, 2**16 + 1, 2**70) * 10]


F = Fraction
CASES: dict[str, tuple[Callable[..., Any], ...]] = {
    "laplace of a third": (laplace, F(1, 3), 400),
    "laplace of 1": (laplace, F(1), 400),
    "laplace of 7/2": (laplace, F(7, 2), 400),
    "laplace of 1000": (laplace, F(1000), 300),
    "laplace of 2^50": (laplace, F(2**50), 60),
    "laplace, every excess pending": (laplace, F(10), 300, 1, F(1, 2), 0),
    "laplace, mostly excess": (laplace, F(3), 300, 1, F(1, 10), 2),
    "laplace, many digits": (laplace, F(7, 2), 400, 2, F(32), 1),
    "laplace, two bytes": (laplace, F(1), 2000, 2, F(4), 8),
    "gaussian of a tenth": (gaussian, F(1, 10), 200),
    "gaussian of 1": (gaussian, F(1), 200),
    "gaussian of 22/7, exactly": (gaussian, F(22, 7), 100, math.inf),
    "gaussian of 100, in large blocks": (gaussian, F(100), 300, GUARD, 2**17),
    "geometric": (geometrics, F(3, 2)),
    "gaussian of 10^8": (gaussian, F(10**8), 100),
    "gaussian of 10^8, half exactly": (gaussian, F(10**8), 100, 0.2),
    "gaussian of 2^100": (gaussian, F(2**100), 60),
    "gaussian too small for floats": (gaussian, F(1, 2**401), 60),
    **{
        f"{'flip' if set_aside else 'exponential'}, {name}": (choice, rate, set_aside, guard, words, *more)
        for set_aside in (False, True)
        for name, rate, guard, words, *more in [
            ("as shipped", F(1, 3), GUARD, 2**17),
            ("exactly", F(1, 3), math.inf, 2**17),
            ("words run out", F(1, 3), GUARD, 3),
            ("no words for a whole row", F(1, 3), GUARD, 1),
            ("half exactly", F(1, 3), 0.2, 7),
            ("far apart", F(1, 2**60), GUARD, 2**17, 2**61),
            ("no rate", F(0), GUARD, 2**17),
            ("large rate", F(2**1001), GUARD, 2**17),
            ("small rate", F(1, 2**1001), GUARD, 2**17),
        ]
    },
    "three shares of 7/2": (share, F(7, 2), 3, 300),
    "two shares of 2^50": (share, F(2**50), 2, 60),
    "half a share, cut in Python": (half, F(10), 5, 100, 1),
    "half a share, words run out": (half, F(10), 5, 100, 2**53, 3),
    "a few rows": (few, F(1000)),
    "exponential mechanism": (public, exponential_mechanism),
    "permute-and-flip": (public, permute_and_flip),
    "coins": (coin,),
    "indices": (index,),
}  # fmt: skip
ANSWERS = {
    "laplace of a third": "3d1c4f2b9218",
    "laplace of 1": "030b9de3b578",
    "laplace of 7/2": "91281e651279",
    "laplace of 1000": "0e1d9a4fa80d",
    "laplace of 2^50": "ea183a056376",
    "laplace, every excess pending": "73c08044c046",
    "laplace, mostly excess": "23c0ba5b22b0",
    "laplace, many digits": "05a57d17fdfc",
    "laplace, two bytes": "898acd4de407",
    "gaussian of a tenth": "a616d235b6d8",
    "gaussian of 1": "75267b3d94b8",
    "gaussian of 22/7, exactly": "3251559c1242",
    "gaussian of 100, in large blocks": "dcf74375091a",
    "geometric": "62e89d3bc055",
    "gaussian of 10^8": "2745268054f5",
    "gaussian of 10^8, half exactly": "22fdbbd9258f",
    "gaussian of 2^100": "78f44389907c",
    "gaussian too small for floats": "2157615c20e6",
    "exponential, as shipped": "528645d12341",
    "exponential, exactly": "a987028698ba",
    "exponential, words run out": "da2f605eb61f",
    "exponential, no words for a whole row": "e049d1a94105",
    "exponential, half exactly": "58a38b311c54",
    "exponential, far apart": "bbfbf2d65266",
    "exponential, no rate": "26c2862defb0",
    "exponential, large rate": "927b34d79873",
    "exponential, small rate": "eba3db7a54e9",
    "flip, as shipped": "1dafe430a015",
    "flip, exactly": "b7ae129373a0",
    "flip, words run out": "ae4fa6b59212",
    "flip, no words for a whole row": "41b6e98ed34b",
    "flip, half exactly": "77907218b7d7",
    "flip, far apart": "054faa9b9958",
    "flip, no rate": "c2a1da8b50ac",
    "flip, large rate": "5927caa1c21f",
    "flip, small rate": "660670d65e59",
    "a few rows": "d48e4c543854",
    "exponential mechanism": "b711a9c86466",
    "permute-and-flip": "ee6dbe618485",
    "three shares of 7/2": "1b902fb014dd",
    "two shares of 2^50": "8e9a42ed6319",
    "half a share, cut in Python": "8467b33298f5",
    "half a share, words run out": "758524c656e4",
    "coins": "9ab7b3ab1a3c",
    "indices": "d045779401cc",
}


class Watched(SeededCoins):
    """Coins that note how many bytes were asked for, time after time."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[int] = []

    def bytes(self, n: int) -> builtins.bytes:
        self.asked.append(n)
        return super().bytes(n)


def answer(name: str) -> str:
    """A digest of the draws, and of how many bytes they took."""
    sampler, *given = CASES[name]
    coins = Watched(len(name))
    draws = [int(draw) for draw in sampler(coins, *given)]
    return hashlib.sha256(f"{draws} {coins.asked}".encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_that_are_known(name: str) -> None:
    assert answer(name) == ANSWERS[name]


if __name__ == "__main__":
    for each in CASES:
        print(f'    "{each}": "{answer(each)}",')
