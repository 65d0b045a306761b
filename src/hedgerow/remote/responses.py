"""Responses of a service as plain data, validated when they are parsed, since the service is somebody else's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

from hedgerow import formatting
from hedgerow.accounting.loss import noise_variance
from hedgerow.accounting.units import Unit
from hedgerow.errors import CuratorError, HedgerowError, PlanError
from hedgerow.evaluation.score import PrivateScore
from hedgerow.inference.text import is_lost
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.schema import Schema
from hedgerow.schema.toml import read


@contextmanager
def parsed_response(url: str) -> Iterator[None]:
    """Around the parsing of a response: missing or wrong fields become a CuratorError."""
    try:
        yield
    except HedgerowError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise CuratorError(f"{url}: its answer does not have the expected fields. Is it a Hedgerow service of this version?") from None


@dataclass(frozen=True, repr=False)
class Loss:
    """An amount of privacy, exactly: what is left, or what something costs."""

    epsilon: Fraction
    delta: Fraction

    def __str__(self) -> str:
        return formatting.loss(self.epsilon, self.delta)

    def __repr__(self) -> str:
        return f"Loss({self})"

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>"

    @classmethod
    def read(cls, found: Mapping[str, str]) -> Loss:
        return cls(amount(found["epsilon"]), amount(found["delta"]))


def amount(text: str) -> Fraction:
    """From the exact text of a service: short, so that nobody can send a number without end."""
    if not isinstance(text, str) or len(text) > 4000 or set(text) - set("0123456789./"):
        raise ValueError("an amount is not a plain fraction")
    return Fraction(text)


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset that you may know of. purposes: what you may use it for, and what is left for each.

    unit: what its ε is counted in; None before its first ceiling, or while its owner has not stated it
    """

    name: str
    closed: bool
    purposes: dict[str, Loss]
    unit: Unit | None

    @classmethod
    def read(cls, found: Any) -> DatasetSummary:
        return cls(str(found["name"]), bool(found["closed"]), _purposes(found), unit_of(found.get("unit")))


@dataclass(frozen=True)
class Dataset(DatasetSummary):
    """One of them with its public schema. owner: whose rows a release with counts will say that it holds.

    signed_with: the public key that the service says it signs releases with; whether it is the owner's is for you to know
    together:    of a service that counts together with others: their names and certificates, hashed; the same at each of them
    together_least: so many of these owners must come; together_name: its own name among them
    """

    schema: Schema
    owner: str
    signed_with: str | None = None
    together: str | None = None
    together_least: int = 0
    together_name: str | None = None

    @classmethod
    def read(cls, found: Any) -> Dataset:
        texts = (None if found.get(name) is None else str(found[name]) for name in ("signed_with", "together", "together_name"))
        key, together, own = texts
        public = read(found["schema"]), str(found["owner"]), key, together, int(found.get("together_least", 0)), own
        return cls(str(found["name"]), bool(found["closed"]), _purposes(found), unit_of(found.get("unit")), *public)


def unit_of(text: str | None) -> Unit | None:
    """From the text of a service."""
    try:
        return None if text is None else Unit.read(text)
    except PlanError:
        raise ValueError("not a unit") from None


def _purposes(found: Any) -> dict[str, Loss]:
    return {str(name): Loss.read(about["remaining"]) for name, about in found["purposes"].items()}


@dataclass(frozen=True, repr=False)
class Quote:
    """What a forest would cost, what is left before it, the charges in order, and the plan in words."""

    cost: Loss
    remaining: Loss
    events: tuple[dict[str, Any], ...]
    plan: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, found: Any) -> Quote:
        lines = tuple((str(what), str(words)) for what, words in found["plan"])
        return cls(Loss.read(found["cost"]), Loss.read(found["remaining"]), tuple(map(dict, found["events"])), lines)

    def lines(self) -> list[tuple[str, str]]:
        """Cost, what is left and the plan, as (what, how much) pairs."""
        left = f"{self.remaining}{'' if self.affordable else ': too little, a request would be refused'}"
        return [("it would cost", str(self.cost)), ("left before it", left), *self.plan]

    @property
    def affordable(self) -> bool:
        """Whether what is left pays for it; the ledger decides when it is requested."""
        return self.cost.epsilon <= self.remaining.epsilon and self.cost.delta <= self.remaining.delta

    @property
    def assumed_rows(self) -> str | None:
        """How many rows the service has assumed, where the true number is private: a guess ("10,000"), or the `rows` of the request."""
        return next((text.partition(" (")[0] for what, text in self.plan if what == "rows" and "assumed" in text), None)

    def __repr__(self) -> str:
        verdict = dict(self.plan).get("verdict", "") if self.affordable else "a request would be refused"
        assumed = (
            "" if self.assumed_rows is None or not self.affordable else f" (for {self.assumed_rows} assumed rows; say how many by rows=)"
        )
        left = f"{self.remaining} left before it{'' if self.affordable else ', too little'}"
        return f"Quote(costs {self.cost}, {left}{f'; {verdict}{assumed}' if verdict else ''})"

    def __str__(self) -> str:
        return formatting.pairs_text(self.lines())

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return formatting.pairs_html(self.lines(), "What it would cost")


NOT_TOLD = ("auc", "auc_error", "brier", "brier_error", "ranking", "roc", "threshold_for")


@dataclass(frozen=True, repr=False)
class RemoteScore:
    """A private score: noisy counts of (true class, predicted class), and what follows from them."""

    confusion: tuple[tuple[int, ...], ...]
    undeclared: int
    classes: tuple[Any, ...]
    noise_scale: Fraction
    accuracy: float
    accuracy_error: float
    guarantee: str

    @property
    def majority(self) -> tuple[Any, float]:
        """The most frequent class and its share: what always answering it would score."""
        return self._score.majority

    @property
    def majority_error(self) -> float:
        """Standard error of that share."""
        return self._score.majority_error

    @property
    def noise_sd(self) -> float:
        return math.sqrt(noise_variance(self.noise_scale))

    @property
    def recall(self) -> float:
        """The share of the rows of a class that is found: of two classes of the last, of more the mean over all."""
        return self._score.recall

    @property
    def precision(self) -> float:
        """The share of rows taken for a class that are of it: of two classes of the last, of more the mean over all."""
        return self._score.precision

    @property
    def mismatch(self) -> str | None:
        """A sentence about test rows that have no declared class, or None where noise could explain them or they are few."""
        return self._score.mismatch

    @property
    def _score(self) -> PrivateScore:
        import numpy as np

        return PrivateScore(np.array(self.confusion), self.undeclared, self.classes, self.noise_scale, no_certificate(self.guarantee))

    def __getattr__(self, name: str) -> NoReturn:
        """Of what a score of one's own rows has and this has not: how to get it."""
        if name in NOT_TOLD:
            raise AttributeError(
                f"{name}: a score that a service makes as a job has the confusion matrix alone (accuracy, recall, precision). For others: "
                'private_score(release, connection.table(NAME), epsilon=…, metrics=["auc"]), another score, with an ε of its own.'
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        label, share = self.majority
        wrong = f"; {self.mismatch}" if self.mismatch else ""
        if is_lost(self.accuracy, self.accuracy_error):
            return f"RemoteScore(accuracy lost in the noise, which is larger than the answer{wrong}; {self.guarantee})"
        return (
            f"RemoteScore(accuracy {self.accuracy:.3f} ± {self.accuracy_error:.2g}; always {label!r}: {share:.3f} ± "
            f"{self.majority_error:.2g}{wrong}; {self.guarantee})"
        )

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        import numpy as np

        from hedgerow.plots.notebook import score_html

        return score_html(replace(self, confusion=np.array(self.confusion)), self.guarantee)  # type: ignore[arg-type]

    @classmethod
    def read(cls, found: Any) -> RemoteScore:
        confusion = tuple(tuple(int(count) for count in row) for row in found["confusion"])
        numbers = amount(found["noise_scale"]), float(found["accuracy"]), float(found["accuracy_error"])
        return cls(confusion, int(found["undeclared"]), tuple(found["classes"]), *numbers, str(found["guarantee"]))


@dataclass(frozen=True)
class Predictions:
    """The class of each row, and the probabilities of the classes in their order."""

    classes: tuple[Any, ...]
    predictions: tuple[Any, ...]
    probabilities: tuple[tuple[float, ...], ...]

    @classmethod
    def read(cls, found: Any) -> Predictions:
        shares = tuple(tuple(map(float, row)) for row in found["probabilities"])
        return cls(tuple(found["classes"]), tuple(found["predictions"]), shares)
