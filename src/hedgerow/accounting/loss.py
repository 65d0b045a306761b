"""Privacy losses as exact numbers: ε is a fraction, so 0.1 + 0.2 is 0.3 here.

A float is read as the decimal that Python prints for it: `epsilon=0.1` means one tenth, not the binary number near it.
Losses are pure ε-differential privacy under add/remove-one-row neighbours; sequential composition adds them. Where δ is above 0,
`zcdp.py` keeps the account.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational
from typing import Any

from hedgerow.errors import FractionWarning, PlanError

MAX_SCALE = 2**50  # noise wider than this could not be added to counts without losing exactness in 64 bits
LEAST_DELTA, MOST_DELTA = Fraction(1, 2**1000), Fraction(1, 2)
_MAX_DIGITS = 100
MOST_MEANT = 100  # the largest denominator of a fraction that a float is taken to stand for
_MAX_BITS = 600  # of the denominator of a sum: its text still fits a document


def exact_epsilon(value: Any, what: str = "epsilon") -> Fraction:
    """A positive finite ε as an exact fraction; accepts int, float, str ("0.1", "1/3"), Decimal and Fraction."""
    epsilon = _fraction(value, what)
    if epsilon <= 0:
        raise PlanError(f'{what}: got {value!r}; expected a number above 0 (for example 1, 0.5 or "1/3").')
    if len(str(epsilon)) > _MAX_DIGITS:
        raise PlanError(f"{what}: got a number of more than {_MAX_DIGITS} digits; expected a shorter one.")
    return epsilon


def exact_delta(value: Any, what: str = "delta") -> Fraction:
    """A δ of at least 0 as an exact fraction; accepts what `exact_epsilon` accepts, and 0."""
    try:
        delta = _fraction(value, what)
    except PlanError:
        delta = Fraction(-1)
    if not 0 <= delta <= MOST_DELTA or 0 < delta < LEAST_DELTA:
        raise PlanError(
            f"{what}: got {value!r}; expected 0 (pure ε), or a small number such as 1e-6, at most 1/2. δ bounds the chance that the "
            "guarantee fails for a person: it should be far below one over the number of rows."
        )
    if len(str(delta)) > _MAX_DIGITS:
        raise PlanError(f"{what}: got a number of more than {_MAX_DIGITS} digits; expected a shorter one.")
    return delta


def _fraction(value: Any, what: str) -> Fraction:
    expected = f'{what}: got {value!r}; expected a finite number, such as 1, 0.5 or "1/3".'
    if value is None:
        raise PlanError(f"{what} is required: how much privacy may this cost? For example {what}=1.")
    if hasattr(value, "item") and not isinstance(value, (int, float, str, Rational, Decimal)):
        short = str(getattr(value, "dtype", "")) in ("float16", "float32")  # whose 0.1 is 0.10000000149 as a float
        value = float(str(value)) if short else value.item()  # a NumPy scalar
    try:
        if isinstance(value, bool):
            raise PlanError(expected)
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))  # a NumPy integer would wrap around later
        if isinstance(value, float):
            return _decimal_of(float(value), what)
        if isinstance(value, Decimal):
            return Fraction(value)
        if isinstance(value, str) and len(value) <= _MAX_DIGITS and not _huge_exponent(value):
            return Fraction(value)
    except (ValueError, ZeroDivisionError, OverflowError, InvalidOperation):
        pass
    raise PlanError(expected)


def _decimal_of(value: float, what: str) -> Fraction:
    """The decimal that Python prints, and a kind word where a fraction was meant that no float is."""
    exact = Fraction(repr(value))
    meant = exact.limit_denominator(MOST_MEANT)
    if meant != exact and abs(meant - exact) < abs(exact) * Fraction(1, 2**50):
        said = text_of_fraction(meant)
        warnings.warn(
            f'{what}: {value!r} is taken as this decimal, which is not exactly {said}. For {said} itself write "{said}", as text.',
            FractionWarning,
            stacklevel=2,
        )
    return exact


def _huge_exponent(text: str) -> bool:
    """ "1e999999999" would be a number of a billion digits."""
    tail = text.lower().partition("e")[2].lstrip("+-")
    return len(tail) > 3


def plain_fraction(text: str, most: int = MAX_SCALE) -> Fraction:
    """An ε or a scale from somebody's file: short, positive, no exponent that would make it huge."""
    if not re.fullmatch(r"[0-9]{1,200}([./][0-9]{1,200})?", text):
        raise ValueError("an ε or a noise scale is not a plain fraction")
    if re.search(r"/0+$", text):
        raise ValueError("an ε or a noise scale is out of range")
    value = Fraction(text)
    if not 0 < value <= most:
        raise ValueError("an ε or a noise scale is out of range")
    return value


def exact_sum(losses: Iterable[Fraction]) -> Fraction:
    """The sum, exactly; refuses numbers that are made to grow without bound (each of them fits a line, their sum does not)."""
    total = Fraction(0)
    for loss in losses:
        total += loss
        if total.denominator.bit_length() > _MAX_BITS:
            raise PlanError("epsilon: the losses have too many digits to be added up; expected short numbers such as 0.5 or 1/3.")
    return total


def text_of_fraction(value: Fraction) -> str:
    """The shortest exact text: "0.3" where the decimal ends, "1/3" where it does not."""
    denominator = value.denominator
    twos, fives = 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    places = max(twos, fives)
    if denominator != 1 or places > 12:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    text = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
    return "-" + text if value < 0 else text


def text_of_delta(delta: Fraction) -> str:
    """A δ for people: "1e-06" where that is exact."""
    rough = repr(float(delta))
    return rough if delta and Fraction(rough) == delta else text_of_fraction(delta)


def text_of_loss(epsilon: Fraction, delta: Fraction) -> str:
    """A loss in words: ε alone where δ is 0."""
    if not delta:
        return f"ε = {text_of_fraction(epsilon)}"
    return f"(ε = {text_of_fraction(epsilon)}, δ = {text_of_delta(delta)})"


def noise_scale(sensitivity: Fraction | int, epsilon: Fraction) -> Fraction:
    """Scale Δ/ε of the discrete Laplace noise that pays for L1 sensitivity Δ with ε; refuses what cannot be drawn."""
    if epsilon <= 0:
        raise PlanError(f"epsilon: got {text_of_fraction(epsilon)}; expected a number above 0.")
    scale = Fraction(sensitivity) / epsilon
    if scale > MAX_SCALE:
        raise PlanError(
            f"epsilon: {text_of_fraction(epsilon)} asks for noise of scale {float(scale):.3g}, far above any count; "
            "expected a scale of at most 2^50. Use a larger epsilon."
        )
    return scale


def noise_variance(scale: Fraction) -> float:
    """Variance of discrete Laplace noise, 2p/(1 − p)² with p = e^(−1/scale). A public number: it holds no noise."""
    if 1 / scale > 700:
        return 0.0  # below the smallest float
    p, q = math.exp(-float(1 / scale)), -math.expm1(-float(1 / scale))
    return 2 * p / (q * q)
