"""Anonymity requirements, and whether groups of persons satisfy them (Sharkey et al. 2008, 3.1).

    k            every group has at least k persons
    (c, ℓ)       d₁ < c·(d_ℓ + … + d_m), d₁ ≥ d₂ ≥ … the class counts of a group (the paper's ≤ and its lower index ℓ − 1 are
                 misprints). Where only hit and miss are known: ℓ ≤ miss + 1 and hit < c·miss/(ℓ − 1)
    (α, k)       at least k persons, and no class has more than the share α of them

None of this is differential privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.accounting.loss import exact_epsilon, text_of_fraction
from hedgerow.errors import PlanError


@dataclass(frozen=True)
class Requirement:
    """What every group must satisfy. Exact numbers: c = 0.1 is one tenth."""

    k: int | None = None
    c: Fraction | None = None
    l: int | None = None  # noqa: E741  the papers' ℓ
    alpha: Fraction | None = None

    @classmethod
    def of(cls, k: Any = None, c: Any = None, l: Any = None, alpha: Any = None) -> Requirement:  # noqa: E741
        """From what a user gave; refuses what means nothing."""
        if k is not None and (isinstance(k, bool) or not hasattr(k, "__index__") or int(k) < 1):
            raise PlanError(f"k: got {k!r}; expected a whole number of at least 1.")
        if (c is None) != (l is None):
            raise PlanError("c, l: a diversity requirement needs both, such as c = 5 and l = 3.")
        if l is not None and (isinstance(l, bool) or not hasattr(l, "__index__") or int(l) < 2):
            raise PlanError(f"l: got {l!r}; expected a whole number of at least 2: one class alone is never diverse.")
        share = None if alpha is None else exact_epsilon(alpha, "alpha")
        if share is not None and not share < 1:
            raise PlanError(f"alpha: got {alpha!r}; expected a share above 0 and below 1.")
        if share is not None and k is None:
            raise PlanError("alpha: an (α, k) requirement needs k, too.")
        if k is None and c is None:
            raise PlanError("requirement: give k, or c and l, or alpha and k.")
        return cls(
            None if k is None else int(k), None if c is None else exact_epsilon(c, "c"), None if l is None else int(l), share
        )  # fmt: skip

    @classmethod
    def from_record(cls, record: Mapping[str, str]) -> Requirement:
        """From the text that a certificate holds."""
        if not record.keys() <= {"k", "c", "l", "alpha"} or any(len(text) > 100 or not text.isascii() for text in record.values()):
            raise PlanError("requirement: expected k, c, l or alpha.")
        whole = {name: int(record[name]) if record[name].isdecimal() else record[name] for name in ("k", "l") if name in record}
        return cls.of(whole.get("k"), record.get("c"), whole.get("l"), record.get("alpha"))

    def record(self) -> dict[str, str]:
        """As text, for a certificate."""
        given = {"k": self.k, "c": self.c, "l": self.l, "alpha": self.alpha}
        return {name: text_of_fraction(Fraction(value)) for name, value in given.items() if value is not None}

    def check_classes(self, n_classes: int) -> None:
        if self.l is not None and self.l > n_classes:
            raise PlanError(f"l: got {self.l}; the target has {n_classes} classes, so no group can have more than {n_classes}.")

    def words(self) -> str:
        said = []
        if self.alpha is not None:
            said.append(f"({text_of_fraction(self.alpha)}, {self.k})-anonymity")
        elif self.k is not None:
            said.append(f"{self.k}-anonymity")
        if self.c is not None:
            said.append(f"({text_of_fraction(self.c)}, {self.l})-diversity")
        return " and ".join(said)

    # ------------------------------------------------------------ many groups at once

    def satisfied(
        self, label: NDArray[np.int64], hit: NDArray[np.float64], miss: NDArray[np.float64], counts: NDArray[np.float64] | None
    ) -> NDArray[np.bool_]:
        """For each group whether it satisfies the requirement. Real class counts decide where there are any."""
        good = np.ones(len(label), dtype=bool)
        total = hit + miss
        if self.k is not None:
            good &= total >= self.k
        if self.alpha is not None:
            good &= _at_least(total, 1 / self.alpha, hit)
            good &= total > 0
        if self.c is not None and self.l is not None:
            good &= self._diverse(hit, miss, counts)
        return good

    def _diverse(self, hit: NDArray[np.float64], miss: NDArray[np.float64], counts: NDArray[np.float64] | None) -> NDArray[np.bool_]:
        assert self.c is not None
        assert self.l is not None
        if counts is not None:
            falling = -np.sort(-counts, axis=1)
            return ~_at_least(falling[:, 0], self.c, falling[:, self.l - 1 :].sum(axis=1))
        return np.asarray((self.l <= miss + 1) & ~_at_least(hit * (self.l - 1), self.c, miss))

    def why_not(self, hit: float, miss: float, counts: NDArray[np.float64] | None) -> str:
        """In words what one group lacks; "" if it lacks nothing."""
        said = []
        total = hit + miss
        if self.k is not None and total < self.k:
            said.append(f"{_number(total)} persons, fewer than {self.k}")
        if self.alpha is not None and (total <= 0 or Fraction(hit) > self.alpha * Fraction(total)):
            said.append(f"one class has {hit / total:.0%} of them, more than {float(self.alpha):.0%}" if total else "nobody is there")
        if self.c is not None and self.l is not None:
            one = None if counts is None else counts[None, :]
            if not self._diverse(np.array([hit]), np.array([miss]), one)[0]:
                if counts is not None:
                    falling = np.sort(counts)[::-1]
                    rest = falling[self.l - 1 :].sum()
                    limit = f"{text_of_fraction(self.c)} × {_number(rest)} (class {self.l} and on)"
                    said.append(f"{_number(falling[0])} of the largest class, not below {limit}")
                elif self.l > miss + 1:
                    said.append(f"{_number(miss)} misses cannot be of {self.l - 1} other classes")
                else:
                    said.append(f"hit {_number(hit)} is not below {text_of_fraction(self.c)} × {_number(miss)} / {self.l - 1}")
        return "; ".join(said)


def _at_least(a: NDArray[np.float64], factor: Fraction, b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """a ≥ factor · b, exactly."""
    n, d = factor.numerator, factor.denominator
    if max(n, d) < 2**20 and max(np.abs(a).max(initial=0), np.abs(b).max(initial=0)) < 2**32:
        return np.asarray(a * d >= n * b)  # products of whole numbers below 2^53: floats hold them
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([Fraction(x) >= factor * Fraction(y) for x, y in pairs], dtype=bool)


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"
