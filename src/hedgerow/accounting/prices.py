"""What a query may cost: a fraction is pure ε, `Rho` a loss in zero-concentrated differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hedgerow.accounting.loss import text_of_fraction
from hedgerow.errors import PlanError


@dataclass(frozen=True)
class Rho:
    """A price in ρ-zCDP: the numbers get discrete Gaussian noise.  [M3]

    >>> Rho(Fraction(1, 40))
    Rho(0.025)
    """

    value: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.value, Fraction) or self.value <= 0:
            raise PlanError(f"rho: got {self.value!r}; expected an exact fraction above 0.")

    def __mul__(self, share: Fraction | int) -> Rho:
        return Rho(self.value * share)

    def __truediv__(self, parts: Fraction | int) -> Rho:
        return Rho(self.value / parts)

    def __repr__(self) -> str:
        return f"Rho({text_of_fraction(self.value)})"


Price = Fraction | Rho
