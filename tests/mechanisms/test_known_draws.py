"""Known answers: from the same coins every sampler draws the same numbers, on every machine, compiled or not.

Each draw follows from the bits alone, since floats decide only what exact arithmetic decides alike. So whatever is changed in a sampler
and changes a draw, or how many bits it takes, is seen here. That the distributions are right is shown in test_sampler_distributions.py
and test_gaussian_distribution.py. Whoever means to change the use of bits prints the new answers with
`python tests/mechanisms/test_known_draws.py`, after those two have passed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hedgerow.mechanisms.choices import GUARD, _choose
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.mechanisms.exactmath import bernoulli_exp, uniform_index
from hedgerow.mechanisms.gaussian import _discrete_gaussian
from hedgerow.mechanisms.samplers import _discrete_laplace
from hedgerow.mechanisms.shares import _thinned, laplace_share


def laplace(coins: SeededCoins, scale: Fraction, size: int, *tuning: Any) -> Any:
    return _discrete_laplace(scale, size, coins, *tuning)


def gaussian(coins: SeededCoins, sigma_squared: Fraction, size: int, guard: float = GUARD, block: int = 50) -> Any:
    return _discrete_gaussian(sigma_squared, size, coins, guard, block)


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
    "laplace, every excess pending": (laplace, F(10), 2300, 1, F(1, 2), 0),
    "laplace, mostly excess": (laplace, F(3), 300, 1, F(1, 10), 2),
    "laplace, many digits": (laplace, F(7, 2), 400, 2, F(32), 1),
    "laplace, two bytes": (laplace, F(1), 2000, 2, F(4), 8),
    "gaussian of a tenth": (gaussian, F(1, 10), 200),
    "gaussian of 1": (gaussian, F(1), 200),
    "gaussian of 22/7, exactly": (gaussian, F(22, 7), 100, math.inf),
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
    "coins": (coin,),
    "indices": (index,),
}  # fmt: skip
ANSWERS = {
    "laplace of a third": "78aa4456af8a",
    "laplace of 1": "9c56ba1c8f9e",
    "laplace of 7/2": "f492ad80c40e",
    "laplace of 1000": "02d8c6514866",
    "laplace of 2^50": "7508d5a6156b",
    "laplace, every excess pending": "220de5809497",
    "laplace, mostly excess": "c9afe292b894",
    "laplace, many digits": "1f171eaece23",
    "laplace, two bytes": "b675321a430e",
    "gaussian of a tenth": "9beb538772b1",
    "gaussian of 1": "0a588221f513",
    "gaussian of 22/7, exactly": "686988c5dcb0",
    "gaussian of 10^8": "75a00ed0ea42",
    "gaussian of 10^8, half exactly": "eafa079bbff1",
    "gaussian of 2^100": "a551ce6e3a72",
    "gaussian too small for floats": "492816e56036",
    "exponential, as shipped": "13004eb76313",
    "exponential, exactly": "f15c3dc64893",
    "exponential, words run out": "a26ed4fe2d09",
    "exponential, half exactly": "fe09c2739bee",
    "exponential, far apart": "d813119266d1",
    "exponential, no rate": "5254b506b21f",
    "exponential, large rate": "2b1602c8426c",
    "exponential, small rate": "c7bb7aeb326c",
    "flip, as shipped": "8b89e5bc4e9d",
    "flip, exactly": "577bd6ada585",
    "flip, words run out": "427c15262173",
    "flip, half exactly": "e67d0fd7330d",
    "flip, far apart": "e18f11bff356",
    "flip, no rate": "1b5078499116",
    "flip, large rate": "2e394c3ca0ee",
    "flip, small rate": "d2fe17d43493",
    "three shares of 7/2": "48fc7338993d",
    "two shares of 2^50": "338202203dd6",
    "half a share, cut in Python": "2aaf686b3a4a",
    "half a share, words run out": "81d096b183bd",
    "coins": "1b735c408930",
    "indices": "9e45e6d6dab7",
}


def answer(name: str) -> str:
    """A digest of the draws, and of the bits that come next."""
    sampler, *given = CASES[name]
    coins = SeededCoins(len(name))
    draws = [int(draw) for draw in sampler(coins, *given)]
    return hashlib.sha256(f"{draws} {coins.bytes(8).hex()}".encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_that_are_known(name: str) -> None:
    assert answer(name) == ANSWERS[name]


if __name__ == "__main__":
    for each in CASES:
        print(f'    "{each}": "{answer(each)}",')
