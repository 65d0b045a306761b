"""What a query costs: the event of noisy counts or of a private choice, from price and sensitivity. M1, M3 and U1 of PROOF.md."""

from __future__ import annotations

from fractions import Fraction

from hedgerow.accounting.events import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, Event
from hedgerow.accounting.loss import noise_scale
from hedgerow.accounting.prices import Price, Rho
from hedgerow.accounting.zcdp import sigma_squared_for
from hedgerow.errors import PlanError


def counting_event(query: str, price: Price, queries: int = 1, l1: int = 1, l2_squared: int = 1, rows_per_person: int = 1) -> Event:
    """`queries` vectors of whole numbers, answered together for one price; by default histograms over disjoint cells.

    price: a fraction is pure ε, and each number gets discrete Laplace noise of scale queries·l1/ε; `Rho` is ρ-zCDP, and each number
           gets discrete Gaussian noise of σ² = queries·l2_squared/(2ρ)
    l1, l2_squared: by how much one row changes one of the vectors, in the L1 norm and in the squared L2 norm
    rows_per_person: how many rows of one person are counted at most (`schema.k`); the price is what that person pays
    """
    l1, l2_squared = l1 * rows_per_person, l2_squared * rows_per_person**2  # [U1]
    if isinstance(price, Rho):
        sigma_squared = sigma_squared_for(queries * l2_squared, price.value)
        return Event(query, DISCRETE_GAUSSIAN, Fraction(0), queries, Fraction(l2_squared), sigma_squared, price.value)  # [M3]
    if not isinstance(price, Fraction):
        raise PlanError(f"{query}: ε must be an exact fraction, got {type(price).__name__}.")
    return Event(query, DISCRETE_LAPLACE, price, queries, Fraction(l1), noise_scale(queries * l1, price))  # [M1]


def choice_event(query: str, epsilon: Price, sensitivity: Fraction, monotone: bool, mechanism: str, rows_per_person: int) -> Event:
    """A private choice in each of some disjoint parts, for ε in all: the rate is ε/Δ if the score is monotone, else ε/2Δ.

    Δ is what `rows_per_person` rows, those of one person, can change; `sensitivity` is what one row can.
    """
    if not isinstance(epsilon, Fraction):
        raise PlanError(f"{query}: ε must be an exact fraction, got {type(epsilon).__name__}.")
    sensitivity = sensitivity * rows_per_person  # [U1]
    scale = noise_scale(sensitivity, epsilon) * (1 if monotone else 2)  # [S4] [S5]
    return Event(query, mechanism, epsilon, 1, sensitivity, scale)
