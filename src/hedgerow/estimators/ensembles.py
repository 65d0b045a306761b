"""What of scikit-learn fits several estimators (VotingClassifier, BaggingClassifier), or hands rows on without their names. What all fits
cost, and whether each member can be fitted, is known before the first: else one is paid for, the next refused, and both are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from types import FrameType
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from hedgerow import formatting
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget
from hedgerow.errors import BudgetError, HedgerowError, PlanError
from hedgerow.estimators.pipelines import refuse_steps, steps_that_learn
from hedgerow.estimators.stack import frames
from hedgerow.estimators.surroundings import (
    BAGGING,
    MULTI_OUTPUT,
    VOTING,
    check_bagging,
    check_numbered,
)
from hedgerow.schema.columns import names_of
from hedgerow.training import rows

INSTEAD = {
    "BaggingClassifier": ", or use the estimator alone, which grows many trees",
    "VotingClassifier": ", or use one estimator with all of the ε",
}
HANDS_ON = ("sklearn.", "imblearn.")  # packages that make arrays of data frames
SHOWN = 4  # names of columns in a message


@dataclass(frozen=True)
class Fits:
    """So many fits of one estimator that keeps ε.

    member:  its name in a VotingClassifier
    steps:   the pipeline whose last step it is, if what stands in front may change the rows
    unnamed: whether it is given an array, whatever its rows were
    """

    estimator: Any
    times: int = 1
    member: str = ""
    steps: Pipeline | None = None
    unnamed: bool = False

    @property
    def epsilon(self) -> Fraction:
        return self.times * exact_epsilon(self.estimator.epsilon)

    @property
    def delta(self) -> Fraction:
        return self.times * exact_delta(self.estimator.delta)


@dataclass(frozen=True)
class Need:
    """What one budget is to pay for, in words too."""

    budget: Budget
    epsilon: Fraction
    delta: Fraction
    what: str


@dataclass(frozen=True)
class Ensemble:
    """Members that are about to be fitted, on these rows where they are known. own: what this fit alone has, and keeps"""

    who: str
    own: Any
    members: Sequence[Fits]
    X: Any = None
    y: Any = None


def fits_of(model: Any, times: int = 1, member: str = "", steps: Pipeline | None = None, unnamed: bool = False) -> list[Fits]:
    """The estimators that keep ε which one fit of `model` fits, and how often each."""
    if isinstance(model, (FrozenEstimator, str)):  # it is not fitted; "drop"
        return []
    if hasattr(model, "_check_settings"):
        return [Fits(model, times, member, steps, unnamed)]
    if isinstance(model, Pipeline):
        return fits_of(model.steps[-1][1], times, member, model if len(model.steps) > 1 else steps, unnamed)
    if isinstance(model, VotingClassifier):
        return [each for name, inner in model.estimators for each in fits_of(inner, times, name, steps, unnamed)]
    if isinstance(model, BaggingClassifier):
        found = fits_of(model.estimator, times * _whole(model.n_estimators), member, steps, True)
        if found:
            check_bagging(model)
        return found
    inner = getattr(model, "estimator", None)
    return [] if inner is None else fits_of(inner, times, member, steps, unnamed)


def outputs_of(y: Any) -> int:
    """The fits that one fit of a MultiOutputClassifier is: nothing else takes several columns of labels."""
    shape: Any = getattr(y, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def _whole(number: Any) -> int:
    return int(number) if isinstance(number, Integral) else 1  # scikit-learn refuses what is none


# ------------------------------------------------------------ the fit of an ensemble


def ensemble_of(frame: FrameType) -> Ensemble | None:
    """The ensemble whose fit is running in this frame."""
    module, name, known = frame.f_globals.get("__name__", ""), frame.f_code.co_name, frame.f_locals
    self, own = known.get("self"), known.get("routed_params")
    if module == VOTING and name == "fit" and own is not None:
        return Ensemble("VotingClassifier", own, fits_of(self), known.get("X"), known.get("y"))
    if module == MULTI_OUTPUT and name in ("fit", "partial_fit") and own is not None and getattr(known.get("y"), "ndim", 1) == 2:
        return Ensemble(type(self).__name__, own, fits_of(self, outputs_of(known["y"])))
    seeds = getattr(self, "_seeds", None)
    if module != BAGGING or name != "_fit" or own is None or seeds is None or not isinstance(self, BaggingClassifier):
        return None
    check_bagging(self)
    return Ensemble("BaggingClassifier", own, fits_of(self.estimator, len(seeds), unnamed=True))


def check_ensemble(found: Ensemble) -> None:
    check_members(found)
    needs = needs_of_fits([found.members])
    check_budgets(found.who, needs, f"Ask for fewer fits or a smaller ε for each{INSTEAD.get(found.who, '')}")


def check_members(found: Ensemble) -> None:
    """A member that would be refused after another one was paid for."""
    for each in found.members if len(found.members) > 1 else ():
        try:
            _check_member(found, each)
        except HedgerowError as error:
            if each is found.members[0]:  # nothing is paid for before it
                raise
            raise PlanError(
                f"{found.who}: the member {each.member!r} would be refused, and the others paid for. Nothing was spent. Leave it out, or "
                f"put it right: {error}"
            ) from error


def _check_member(found: Ensemble, each: Fits) -> None:
    estimator, routed = each.estimator, get_config()["enable_metadata_routing"]  # with which a fit may be told to take more
    estimator._check_settings()
    if found.X is None or estimator._inferred or estimator.schema is None:
        return
    check_numbered(estimator, found.who)
    if each.steps is not None and not routed:
        refuse_steps(steps_that_learn(each.steps))
    schema = estimator._declared_schema("fit")
    rows.reviewed(schema, routed)
    if each.steps is None:
        rows.checked_table(found.X, found.y, schema, type(estimator).__name__)
    if each.unnamed and hasattr(found.X, "columns"):
        _check_order("BaggingClassifier", names_of(found.X), list(schema.names), each.steps is not None)


# ------------------------------------------------------------ what it costs


def needs_of_fits(candidates: Sequence[Sequence[Fits]], folds: int = 1, refit: bool = False) -> list[Need]:
    """Of each budget: so many folds for each of some candidates. Of one fit more, with the best, the most is counted: it may be any."""
    budgets = {key_of(each.estimator.budget): each.estimator.budget for fits in candidates for each in fits}
    needs = []
    for key, budget in budgets.items():
        if budget is None:
            continue
        own = [[each for each in fits if key_of(each.estimator.budget) == key] for fits in candidates]
        times, epsilons, deltas = ([sum(getattr(each, name) for each in fits) for fits in own] for name in ("times", "epsilon", "delta"))
        last = max(times), max(epsilons), max(deltas)
        count = folds * sum(times)
        what = f"{count}{f' + {last[0]}' if refit else ''} fit{'' if count == 1 and not refit else 's'}"
        needs.append(Need(budget, folds * sum(epsilons) + refit * last[1], folds * sum(deltas) + refit * last[2], what))
    return needs


def check_budgets(who: str, needs: Sequence[Need], advice: str) -> None:
    """Everything that one budget pays for, together."""
    for key, budget in {key_of(each.budget): each.budget for each in needs}.items():
        own = [each for each in needs if key_of(each.budget) == key]
        epsilon, delta = sum((each.epsilon for each in own), Fraction(0)), sum((each.delta for each in own), Fraction(0))
        if epsilon <= budget.remaining and delta <= budget.remaining_delta:
            continue
        left, loss = formatting.loss(budget.remaining, budget.remaining_delta), formatting.loss(epsilon, delta)
        asks = f"needs {loss}" if [each.what for each in own] == ["1 fit"] else f"need {loss} together"
        raise BudgetError(
            f"{who}: {' and '.join(each.what for each in own)} {asks}, and the budget has {left} left. Nothing was spent. {advice}."
        )


def key_of(budget: Budget | None) -> Any:
    """The same for objects that are one budget."""
    return str(budget.path) if isinstance(budget, BudgetFile) else id(budget)


# ------------------------------------------------------------ names of columns


def check_unnamed(estimator: Any, X: Any) -> None:
    """Refuse an array that scikit-learn made, around this estimator, of a data frame whose columns are not those of the schema in its
    order. Other code, and whoever gives an array, is taken at its word.
    """
    if not isinstance(X, np.ndarray) or estimator._inferred or estimator.schema is None:
        return
    steps = False
    for frame in frames():
        around = frame.f_locals.get("ensemble", frame.f_locals.get("self"))
        if around is estimator or not isinstance(around, BaseEstimator) or not frame.f_globals.get("__name__", "").startswith(HANDS_ON):
            continue
        steps = steps or (isinstance(around, Pipeline) and len(around.steps) > 1)
        given = frame.f_locals.get("X")
        have = names_of(given) if hasattr(given, "columns") else getattr(around, "feature_names_in_", None)
        if have is not None:
            return _check_order(type(around).__name__, [str(name) for name in have], list(estimator._declared_schema("fit").names), steps)


def _check_order(who: str, have: list[str], names: list[str], steps: bool) -> None:
    """steps: what stands between may make other columns, which have other names"""
    if have == names or (steps and sorted(have) != sorted(names)):
        return
    first = [f"{', '.join(each[:SHOWN])}{', …' if len(each) > SHOWN else ''}" for each in (have, names)]
    keep = ' Or keep the names: set_output(transform="pandas") of the pipeline.' if who == "Pipeline" else ""
    raise PlanError(
        f"fit: {who} hands rows on as an array, without the names of columns: it was given {first[0]}, the schema declares {first[1]}, and "
        f"columns would be taken for others. Nothing was spent. Give them as the schema has them: X[list(schema.names)].{keep}"
    )
