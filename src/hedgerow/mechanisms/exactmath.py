"""Certified arithmetic: is a uniform real number below e^(-x), or below 1/(1 + e^x)? Answered exactly.

Only integers are used, so there is no rounding except the floors and ceilings written here, each in the safe
direction. A uniform real U in [0, 1) is an endless string of random bits, of which only as many are drawn as
the answer needs.
"""

from collections.abc import Callable
from fractions import Fraction

from hedgerow.mechanisms.coins import Coins

Bounds = Callable[[Fraction, int], tuple[int, int]]


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def exp_minus_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits · e^(-x) <= high for rational x >= 0, usually with high - low <= 1.  [S2]

    With y = x / 2^h < 1/2:  e^(-x) = (1 / Σ y^n / n!)^(2^h). Every term is positive, so flooring all of them
    gives a lower and ceiling all of them an upper bound of the sum. The terms after y^n / n! sum to less than
    that term, because each is less than half of the one before.
    """
    if x < 0:
        raise ValueError(f"exp_minus_bounds needs x >= 0, got {x}")
    if x >= bits:
        return 0, 1  # e^(-x) <= e^(-bits) <= 2^(-bits); also keeps a huge x cheap
    halvings = int(x).bit_length() + 1
    work = bits + halvings + 16  # each squaring doubles the error; 16 bits more for the sum
    one = 1 << work
    sum_low, sum_high = _exp_bounds(x / (1 << halvings), work)
    low, high = one * one // sum_high, _ceil_div(one * one, sum_low)
    for _ in range(halvings):
        low, high = low * low // one, _ceil_div(high * high, one)
    return low >> (work - bits), _ceil_div(high, 1 << (work - bits))


def _exp_bounds(y: Fraction, work: int) -> tuple[int, int]:
    """Integers low <= 2^work · e^y <= high for rational y from 0 to 1/2, at any precision: Σ y^n / n!.  [S2]"""
    one = 1 << work
    y_low = (y.numerator << work) // y.denominator
    y_high = y_low + 1
    term_low = term_high = sum_low = sum_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = term_low * y_low // (n * one)
        term_high = _ceil_div(term_high * y_high, n * one)
        sum_low += term_low
        sum_high += term_high
    return sum_low, sum_high + term_high  # and everything after the last term


def logistic_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits / (1 + e^x) <= high for rational x >= 0.  [S2]

    1/(1 + e^x) = a/(1 + a) with a = e^(-x), which grows with a: each bound comes from the same bound of a.
    """
    low, high = exp_minus_bounds(x, bits)
    one = 1 << bits
    return low * one // (one + low), _ceil_div(high * one, one + high)


def leading_bits(bounds: Bounds, x: Fraction, bits: int) -> int:
    """⌊2^bits · q⌋ where `bounds(x, ·)` encloses q, certified.  [S2]

    Precision doubles until both bounds agree. That ends because q is irrational: e^x is, for rational x != 0.
    """
    if x <= 0:
        raise ValueError(f"leading_bits needs x > 0 (at 0 the number is rational), got {x}")
    precision = bits + 32
    while True:
        low, high = bounds(x, precision)
        extra = precision - bits
        if low >> extra == high >> extra:
            return low >> extra
        precision *= 2


def uniform_is_below(bounds: Bounds, x: Fraction, coins: Coins, word: int = 0, bits: int = 0) -> bool:
    """Whether U < q, for the uniform real U whose first `bits` bits are the integer `word`.  [S2]

    The first bits of U and of q differ: decided. They are equal: draw 64 more bits of U.
    """
    while True:
        edge = leading_bits(bounds, x, bits)
        if word != edge:
            return word < edge
        word = word << 64 | int.from_bytes(coins.bytes(8), "big")
        bits += 64


def bernoulli_exp(x: Fraction, coins: Coins, word: int = 0, bits: int = 0) -> bool:
    """True with probability exactly e^(-x), x >= 0; `word` as in `uniform_is_below`.  [S3]"""
    return x == 0 or uniform_is_below(exp_minus_bounds, x, coins, word, bits)


def uniform_index(n: int, coins: Coins) -> int:
    """Uniform on 0..n-1, exactly: numbers of just enough bits, rejected until one is below n."""
    if n < 1:
        raise ValueError(f"uniform_index needs at least one index to choose from, got n={n}")
    bits = (n - 1).bit_length()
    n_bytes = (bits + 7) // 8
    while True:
        index = int.from_bytes(coins.bytes(n_bytes), "big") >> (8 * n_bytes - bits)
        if index < n:
            return index
