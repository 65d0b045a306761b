"""How many discrete Laplace draws a second: hedgerow and OpenDP, in the same run.

Ours: the best of three runs of 10^6 draws, after a warm-up that compiles the kernel and computes thresholds.
OpenDP: the best of three runs of 10^5 draws in one vector call, its list of zeros built beforehand. Both are
given as draws a second; OpenDP's time grows linearly with the number of draws, so its smaller number of draws
does it no injustice.
"""

import time
from collections.abc import Callable
from fractions import Fraction

from hedgerow.mechanisms.coins import SYSTEM
from hedgerow.mechanisms.samplers import discrete_laplace

SCALES = (1, 10, 100, 1000)
OUR_DRAWS = 10**6
THEIR_DRAWS = 10**5
REPEATS = 3


def draws_per_second(sample: Callable[[], object], draws: int) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        sample()
        best = min(best, time.perf_counter() - start)
    return draws / best


def opendp_sampler(scale: float) -> Callable[[], object] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=scale)
    zeros = [0] * THEIR_DRAWS
    return lambda: measurement(zeros)


def measure() -> list[tuple[int, float, float | None]]:
    """(scale, our draws a second, OpenDP's or None where it is not installed)."""
    found: list[tuple[int, float, float | None]] = []
    for scale in SCALES:

        def ours(scale: Fraction = Fraction(scale)) -> object:
            return discrete_laplace(scale, OUR_DRAWS, SYSTEM)

        discrete_laplace(Fraction(scale), 1000, SYSTEM)
        theirs = opendp_sampler(float(scale))
        their_rate = None if theirs is None else draws_per_second(theirs, THEIR_DRAWS)
        found.append((scale, draws_per_second(ours, OUR_DRAWS), their_rate))
    return found


if __name__ == "__main__":
    for scale, our_rate, their_rate in measure():
        print(f"scale {scale:>5}: hedgerow {our_rate:>12,.0f} draws/s, OpenDP {their_rate or 0:>10,.0f}")
