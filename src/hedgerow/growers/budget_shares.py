"""What the stages of a Hedgerow forest may spend: shares of ε, or of ρ where the noise is Gaussian; and ν, which decides about them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hedgerow.accounting.events import EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import rho_for, rho_of_pure
from hedgerow.schema.codebook import Codebook

SELECT_BELOW = 4  # ν below which only some attributes are measured


@dataclass(frozen=True)
class BudgetShares:
    """What a fit may spend: ε, or ρ where δ > 0. Shares are rounded down to short fractions, so that sums stay exact and short.

    rows_per_person: how many rows of a person are counted at most; what the amount buys has so many times the noise
    """

    amount: Fraction
    concentrated: bool
    rows_per_person: int = 1

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction) -> BudgetShares:
        return cls(rho_for(epsilon, delta), True) if delta else cls(epsilon, False)

    def price(self, share: Fraction) -> Price:
        amount = self.amount * share
        return Rho(_short(amount)) if self.concentrated else amount

    def choice(self, share: Fraction, mechanism: str) -> Fraction:
        """The pure ε of a private choice that costs this share."""
        if not self.concentrated:
            return self.amount * share
        times = 8 if mechanism == EXPONENTIAL else 2  # ε²/8 or ε²/2 of ρ
        return _short(Fraction(math.sqrt(times * self.amount * share)) * Fraction(999_999, 1_000_000))

    @classmethod
    def after_rows(cls, codebook: Codebook, n: int, epsilon: Fraction, delta: Fraction, paid: Fraction) -> BudgetShares:
        """What is left when pure ε = `paid` has bought n̂. Gaussian noise is taken only if it is the smaller and there are rows enough:
        where few attributes are chosen and measured, Laplace noise is better.  [Z4]
        """
        k = codebook.schema.k
        pure = cls(epsilon - paid, False, k)
        if not gaussian_pays(len(codebook.sizes), epsilon, delta):
            return pure
        left = rho_for(epsilon, delta) - rho_of_pure(paid)
        if left <= 0:  # of a large ε, for many hundred attributes
            return pure
        other = cls(_short(left), True, k)
        drawable = other.noise_sd(len(codebook.sizes)) < 2**30  # a share of it still is, in steps of a gradient
        return other if drawable and signal_to_noise(codebook, n, other) >= SELECT_BELOW else pure

    @property
    def mechanism(self) -> str:
        return EXPONENTIAL if self.concentrated else PERMUTE_AND_FLIP

    def noise_sd(self, tables: int, share: Fraction = Fraction(1)) -> float:
        """Of one count, if that share pays for so many tables."""
        amount, k = float(self.amount * share), self.rows_per_person
        return k * (math.sqrt(tables / (2 * amount)) if self.concentrated else math.sqrt(2) * tables / amount)

    def rate(self, share: Fraction) -> float:
        """How strongly a permute-and-flip choice that costs this share prefers one row more."""
        return float(self.choice(share, PERMUTE_AND_FLIP)) / self.rows_per_person


def _short(value: Fraction) -> Fraction:
    """Rounded down to nine digits."""
    digits = 9 - math.floor(math.log10(value))
    return Fraction(math.floor(value * 10**digits), 10**digits) if digits > 0 else Fraction(math.floor(value))


def gaussian_pays(m: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise on m tables is smaller than Laplace noise for the same ε: if not, δ is not used at all.

    Several rows of a person make both larger by the same factor.
    """
    return bool(delta) and BudgetShares.of(epsilon, delta).noise_sd(m) < BudgetShares.of(epsilon, Fraction(0)).noise_sd(m)


def signal_to_noise(codebook: Codebook, n: int, shares: BudgetShares) -> float:
    """ν: rows in a cell of a one-way table, spread evenly, against the noise on its class counts."""
    cells = sum(min(size, 16) for size in codebook.sizes) / len(codebook.sizes)
    return n / (cells * codebook.n_classes * shares.noise_sd(len(codebook.sizes)))
