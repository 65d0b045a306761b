"""What the stages of a Hedgerow forest may spend: shares of ε, or of ρ where the noise is Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hedgerow.accounting.events import EXPONENTIAL, PERMUTE_AND_FLIP
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import choice_epsilon, rho_for, rho_of_pure
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.plan import GAUSSIAN_FROM, ROWS_SHARE


@dataclass(frozen=True)
class BudgetShares:
    """What a fit may spend: ε, or ρ where δ > 0. Shares are rounded down to short fractions, so that sums stay exact and short.

    rows_per_person: how many rows of a person are counted at most; what the amount buys has so many times the noise
    """

    amount: Fraction
    concentrated: bool
    rows_per_person: int = 1

    def price(self, share: Fraction) -> Price:
        amount = self.amount * share
        return Rho(_short(amount)) if self.concentrated else amount

    def choice(self, share: Fraction, mechanism: str) -> Fraction:
        """The pure ε of a private choice that costs this share."""
        if not self.concentrated:
            return self.amount * share
        return choice_epsilon(self.amount * share, 8 if mechanism == EXPONENTIAL else 2)

    @classmethod
    def after_rows(cls, codebook: Codebook, n: int, epsilon: Fraction, delta: Fraction, paid: Fraction) -> BudgetShares:
        """What is left when pure ε = `paid` has bought n̂. Gaussian noise is taken only if there are rows enough.  [Z4]"""
        k = codebook.schema.k
        pure = cls(epsilon - paid, False, k)
        if not delta or n * float(epsilon) / (codebook.n_classes * k) < GAUSSIAN_FROM:
            return pure
        left = rho_for(epsilon, delta) - rho_of_pure(paid)
        if left <= 0:
            return pure
        other = cls(_short(left), True, k)
        return other if other.noise_sd(len(codebook.sizes)) < 2**30 else pure  # a share of it still is drawable, in steps of a gradient

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


def price_of_rows(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The pure ε for n̂: 3 % of ε, and with a δ no more than 3 % of ρ."""
    most = ROWS_SHARE * epsilon
    return min(most, choice_epsilon(ROWS_SHARE * rho_for(epsilon, delta), 2)) if delta else most


def _short(value: Fraction) -> Fraction:
    """Rounded down to nine digits."""
    digits = 9 - math.floor(math.log10(value))
    return Fraction(math.floor(value * 10**digits), 10**digits) if digits > 0 else Fraction(math.floor(value))
