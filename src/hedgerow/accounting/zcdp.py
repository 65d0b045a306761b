"""Zero-concentrated differential privacy (Bun & Steinke 2016) as exact numbers: ρ is a fraction, and the ρ of events add up.

An algorithm is ρ-zCDP if D_α(M(D) ‖ M(D′)) ≤ α·ρ for all neighbours D, D′ (add/remove one row) and all α > 1, where D_α is the
Rényi divergence. A release states (ε, δ), and the conversion here is certified: every logarithm is enclosed by integers, and each
rounding goes to the safe side. A float only proposes the α at which the bound is taken, and every α gives a true bound.
Labels [Z1] to [Z3] and [M3] refer to the theorems in mechanisms/PROOF.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, EXPONENTIAL, Event
from hedgerow.accounting.loss import LEAST_DELTA, MAX_SCALE, MOST_DELTA, text_of_fraction
from hedgerow.errors import PlanError

LEAST, MOST = Fraction(1, 2**100), Fraction(2**100)  # of ε and ρ
DIGITS = 10  # of a number that a search finds
LOG_BITS = 256  # after the binary point


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """What an ε-DP event costs: ε²/2.  [Z2]"""
    return epsilon * epsilon / 2


def rho_of_exponential(epsilon: Fraction) -> Fraction:
    """What the exponential mechanism at the rate of ε costs: ε²/8, its range being ε. NOT for permute-and-flip.  [Z2]"""
    return epsilon * epsilon / 8


def rho_of_gaussian(sensitivity_squared: Fraction | int, sigma_squared: Fraction) -> Fraction:
    """What discrete Gaussian noise of parameter σ² on an integer vector of L2 sensitivity Δ costs: Δ²/(2σ²).  [M3]"""
    return Fraction(sensitivity_squared) / (2 * sigma_squared)


def zcdp_cost(event: Event) -> Fraction:
    """The ρ of one event: its own for Gaussian noise, and what its pure ε implies for all others.  [M3] [Z2]"""
    return rho_of_event(event.mechanism, event.epsilon, event.rho)


def rho_of_event(mechanism: str, epsilon: Fraction, rho: Fraction) -> Fraction:
    """The same from the fields of an event that stands in a file."""
    if mechanism == DISCRETE_GAUSSIAN:
        return rho
    return rho_of_exponential(epsilon) if mechanism == EXPONENTIAL else rho_of_pure(epsilon)


def sigma_squared_for(sensitivity_squared: Fraction | int, rho: Fraction) -> Fraction:
    """The σ² that pays for L2 sensitivity Δ with ρ: Δ²/(2ρ); refuses what cannot be drawn.  [M3]"""
    if rho <= 0:
        raise PlanError(f"rho: got {text_of_fraction(rho)}; expected a number above 0.")
    sigma_squared = Fraction(sensitivity_squared) / (2 * rho)
    if sigma_squared > MAX_SCALE**2:
        raise PlanError(
            f"rho: {float(rho):.3g} asks for Gaussian noise of σ = {math.sqrt(sigma_squared):.3g}, far above any count; "
            "expected σ of at most 2^50. Use a larger epsilon."
        )
    return sigma_squared


def gaussian_variance(sigma_squared: Fraction) -> float:
    """Variance of the discrete Gaussian of parameter σ². A public number: it holds no noise."""
    if sigma_squared >= 4:
        return float(sigma_squared)  # Poisson summation: the relative difference is below 8π²σ² e^(-2π²σ²), here below 1e-31
    if sigma_squared < Fraction(1, 1500):
        return 0.0  # 2 e^(-750): below the smallest float
    rate = float(1 / (2 * sigma_squared))
    weights = [math.exp(-rate * x * x) for x in range(80)]  # e^(-800) is 0
    return 2 * math.fsum(x * x * w for x, w in enumerate(weights)) / (2 * math.fsum(weights) - 1)


def rho_after(spent: Fraction, requested: Fraction, whole: Fraction) -> Fraction:
    """What is spent after one more event. To be called before the event: it refuses what would exceed the whole.  [Z1]"""
    if requested < 0 or spent + requested > whole:
        raise PlanError(
            f"rho: got a request for {text_of_fraction(requested)}; expected at most {text_of_fraction(whole - spent)}, "
            f"what is left of {text_of_fraction(whole)}."
        )
    return spent + requested


@lru_cache(maxsize=4096)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, short and rounded down, for which every ρ-zCDP algorithm is (ε, δ)-DP by the bound of [Z3].

    >>> rho_for(Fraction(1), Fraction(1, 10**6))
    Fraction(487119407, 20000000000)
    """
    _check(delta=delta, epsilon=epsilon)
    target = float(epsilon)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def too_small(a: float) -> bool:  # the slope of (ε + gain)/α in a = α - 1 is positive: it is so up to the maximum, then no more
        return -(math.log1p(a) + log_delta) * (1 + 2 * a) / a / a > target + math.log1p(1 / a)

    a = _edge(too_small)
    rho = (epsilon + _gain(a, delta)) / (1 + a)
    # A hair less than the best, so that `epsilon_for` of it does not come out above ε.
    return _short(rho * (1 - Fraction(1, 10**12)), up=False)


def epsilon_for(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest ε, short and rounded up, for which every ρ-zCDP algorithm is (ε, δ)-DP by the bound of [Z3].

    >>> float(epsilon_for(Fraction(1, 10), Fraction(1, 10**6)))
    2.141938929
    """
    if rho == 0:
        return Fraction(0)
    _check(delta=delta, rho=rho)
    rough = float(rho)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def too_small(a: float) -> bool:  # the slope of αρ - gain in a = α - 1 is negative
        return -(math.log1p(a) + log_delta) / a / a > rough

    a = _edge(too_small)
    epsilon = (1 + a) * rho - _gain(a, delta)
    return _short(epsilon, up=True) if epsilon > 0 else Fraction(0)


def choice_epsilon(rho: Fraction, times: int = 8) -> Fraction:
    """The largest short ε for which a choice costs at most ρ: ε²/8 ≤ ρ for the exponential mechanism, ε²/2 ≤ ρ (times=2) for others.  [Z2]

    >>> choice_epsilon(Fraction(1, 50))
    Fraction(2, 5)
    """
    places = max(0, DIGITS - math.floor((math.log10(rho.numerator) - math.log10(rho.denominator)) / 2))
    return Fraction(math.isqrt(math.floor(times * rho * 10 ** (2 * places))), 10**places)


def _gain(a: Fraction, delta: Fraction) -> Fraction:
    """A lower bound of ln(α/(α - 1)) + ln(αδ)/(α - 1) for α = 1 + a: ε = αρ - gain and ρ = (ε + gain)/α are sure.  [Z3]"""
    low, _ = log_bounds(1 + 1 / a, LOG_BITS)
    low_too, _ = log_bounds((1 + a) * delta, LOG_BITS)
    return Fraction(low, 2**LOG_BITS) + Fraction(low_too, 2**LOG_BITS) / a


def _edge(too_small: Callable[[float], bool]) -> Fraction:
    """Where `too_small` ends, nearly: it holds up to some number and not beyond. Any result is safe, see `_gain`."""
    low, high = -120.0, 240.0  # of log2(α - 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(2.0**middle) else (low, middle)
    return Fraction(2.0**low)


def _check(delta: Fraction, **loss: Fraction) -> None:
    for name, value in loss.items():
        if not LEAST <= value <= MOST:
            raise PlanError(f"{name}: got {text_of_fraction(value)}; expected a number between 2^-100 and 2^100.")
    if not LEAST_DELTA <= delta <= MOST_DELTA:
        raise PlanError(f"delta: got {text_of_fraction(delta)}; expected a number above 0 and at most 1/2, such as 1e-6.")


def rounded_up(value: Fraction, digits: int) -> Fraction:
    """A positive number to so many leading decimal digits (one more or less at a power of ten), rounded up."""
    return _short(value, True, digits)


def _short(value: Fraction, up: bool, digits: int = DIGITS) -> Fraction:
    """A positive number to so many leading decimal digits (one more or less at a power of ten), rounded up or down."""
    places = digits - math.floor(math.log10(value.numerator) - math.log10(value.denominator)) - 1
    unit = Fraction(10) ** -places
    return (math.ceil(value / unit) if up else math.floor(value / unit)) * unit


def log_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits · ln x <= high for rational x > 0.  [Z3]

    x = 2^k m with 1/2 < m < 2, and ln m = 2 artanh u with u = (m - 1)/(m + 1), |u| < 1/3; ln 2 = 2 artanh(1/3).
    """
    if x <= 0:
        raise ValueError(f"log_bounds needs x > 0, got {x}")
    k = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** k
    work = bits + abs(k).bit_length() + 16
    low, high = _artanh_bounds(abs(m - 1) / (m + 1), work)
    if m < 1:
        low, high = -high, -low
    two_low, two_high = _artanh_bounds(Fraction(1, 3), work)
    if k < 0:
        two_low, two_high = two_high, two_low
    low, high = 2 * (low + k * two_low), 2 * (high + k * two_high)
    return low >> (work - bits), -(-high >> (work - bits))


def _artanh_bounds(u: Fraction, work: int) -> tuple[int, int]:
    """Bounds of 2^work · artanh u = 2^work · Σ u^n / n over odd n, for 0 <= u <= 1/3. Floors below, ceilings above.  [Z3]"""
    u_low = (u.numerator << work) // u.denominator
    u_high = u_low + 1
    power_low, power_high = u_low, u_high
    low = high = 0
    n = 1
    while power_high > 1:
        low += power_low // n
        high -= -power_high // n
        power_low = power_low * u_low * u_low >> 2 * work
        power_high = -(-power_high * u_high * u_high >> 2 * work)
        n += 2
    return low, high + 2 * power_high  # all further terms: at most u^n (1 + u² + u⁴ + …)
