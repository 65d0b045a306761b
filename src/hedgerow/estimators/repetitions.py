"""Cross-validation and searches fit many times: what all fits and scores cost together is known before the first, and refused there if a
budget cannot pay it, or if a candidate could not be fitted. scikit-learn clones an estimator in the calling process before every fit, and
that is where the stack is read.

Where the number of fits is not known (a search in rounds, a meta-estimator of somebody else), each fit is refused when it cannot be paid.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from inspect import isfunction, signature
from types import FrameType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from joblib import Parallel
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.accounting.meter import Budget
from hedgerow.engines.draft import as_array
from hedgerow.engines.table_check import where_missing
from hedgerow.errors import HedgerowError, NoBudgetWarning, PlanError, SharedPersonsWarning
from hedgerow.estimators.ensembles import (
    Ensemble,
    Fits,
    Need,
    check_budgets,
    check_ensemble,
    check_members,
    ensemble_of,
    fits_of,
    key_of,
    needs_of_fits,
    outputs_of,
)
from hedgerow.estimators.pipelines import check_in_front, last_step
from hedgerow.estimators.stack import frames
from hedgerow.estimators.surroundings import (
    CROSS_PREDICT,
    VALIDATION,
    instead_of_a_search,
    refuse_around,
    said,
    scorers_of,
)
from hedgerow.evaluation.private import private_score
from hedgerow.evaluation.scorer import PrivateScorer, private_scorer
from hedgerow.inference.ranking import positive_code
from hedgerow.release.release import Release
from hedgerow.schema.column_types import check_label_type
from hedgerow.schema.columns import labels_column
from hedgerow.training import rows
from hedgerow.training.settling import is_in_vain

SEARCH = "sklearn.model_selection._search"
PLAIN = (bool, int, float, str, Fraction, Decimal, type(None))  # values that a message may show; another may be a table

_checked: WeakValueDictionary[int, Any] = WeakValueDictionary()  # what each search or validation that was looked at has of its own
_in_vain: WeakValueDictionary[int, Any] = WeakValueDictionary()  # the same, of those of which a fold counted next to nothing


@dataclass(frozen=True)
class Repetitions:
    """So many folds for each of some candidates, each scored; and perhaps one fit more, with the best candidate on all rows."""

    who: str
    folds: int
    candidates: Sequence[Mapping[str, Any]]
    scorers: Sequence[Any]
    scored: int  # parts of the rows on which each fit is scored
    refit: bool

    @property
    def fits(self) -> int:
        return self.folds * len(self.candidates)


def check_repetitions(estimator: Any) -> None:
    """Called when an estimator that keeps ε is cloned: refuses what is around it before anything is paid."""
    for frame in frames():
        parallel = frame.f_locals.get("parallel")
        own = _own(frame)
        if own is not None and _in_vain.get(id(own)) is own:
            raise PlanError(
                "cross-validation: next to no row was counted in the fold before, as its warning says, so that every further one would be "
                "paid for in vain. No more was spent. Put right what that warning names. Labels in a list or a column of objects say no "
                "type: np.array(y) or y.convert_dtypes() gives them one, and a wrong one is refused before anything is paid."
            )
        ensemble = ensemble_of(frame)
        if ensemble is not None:
            _check_once(ensemble, estimator)
            continue
        if own is None or _checked.get(id(own)) is own:
            continue
        found = _repetitions(frame)
        if found is None:
            continue
        _checked[id(own)] = own
        base = frame.f_locals.get("base_estimator", frame.f_locals.get("estimator"))
        refuse_around()
        check_in_front(estimator, _given_to_fits(frame))
        _check_table(frame, estimator, base, found)
        _check_scorers(found, estimator, frame.f_locals.get("y"))
        models = _checked_candidates(found, base)
        times = outputs_of(frame.f_locals.get("y"))
        fits = [fits_of(model, times) for model in models] if fits_of(base) else [[Fits(estimator)] for _ in models]
        for members in fits:
            check_members(Ensemble(found.who, own, members))
        budgets = [
            *(each.estimator.budget for members in fits for each in members),
            *(each.budget for each in found.scorers if isinstance(each, PrivateScorer)),
        ]
        _check_processes(parallel, budgets, found.who)
        _check_budgets(found, fits, estimator)
        _say_several_budgets(found, estimator)
        _check_persons(frame, estimator, found.who)
        return


def _own(frame: FrameType) -> Any:
    """What a search or validation that runs in this frame has of its own."""
    parallel = frame.f_locals.get("parallel")
    return parallel if isinstance(parallel, Parallel) else frame.f_locals.get("routed_params")


def note_in_vain(release: Release) -> None:
    """After a fit that is paid for, by its released counts alone: the folds that follow are refused where next to no row was counted.
    Seen where they run in this process, one after the other.
    """
    for frame in frames():
        own = _own(frame)
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == (VALIDATION, "cross_validate") and own is not None:
            if is_in_vain(release):
                _in_vain[id(own)] = own
            return


def _check_once(ensemble: Ensemble, estimator: Any) -> None:
    """Before its first fit: later there is less left."""
    if _checked.get(id(ensemble.own)) is not ensemble.own:
        check_in_front(estimator)
        check_ensemble(ensemble)
        _checked[id(ensemble.own)] = ensemble.own


def _repetitions(frame: FrameType) -> Repetitions | None:
    known, name, module = frame.f_locals, frame.f_code.co_name, frame.f_globals.get("__name__", "")
    if module == SEARCH and name == "evaluate_candidates" and isinstance(known.get("candidate_params"), list):
        search = known.get("self")
        scorers = scorers_of(known.get("fit_and_score_kwargs", {}).get("scorer"))
        scored = 1 + bool(getattr(search, "return_train_score", False))
        folds = int(known.get("n_splits", 1))
        return Repetitions(type(search).__name__, folds, known["candidate_params"], scorers, scored, bool(getattr(search, "refit", False)))
    if module != VALIDATION or not {"X", "y"} <= known.keys():
        return None
    try:
        return _validation(name, known)
    except (KeyError, TypeError, ValueError, AttributeError):  # another scikit-learn
        return None


def _validation(name: str, known: Mapping[str, Any]) -> Repetitions | None:
    """What a function of scikit-learn's validation is about to do, by its local variables."""

    def folds() -> int:
        return int(known["cv"].get_n_splits(known["X"], known["y"], known.get("groups")))

    scorers = scorers_of(known.get("scorers", known.get("scorer")))
    match name:
        case "cross_validate":
            return Repetitions("cross-validation", folds(), [{}], scorers, 1 + bool(known.get("return_train_score")), False)
        case "cross_val_predict":
            return Repetitions(name, len(known["splits"]), [{}], [], 0, False)
        case "learning_curve":
            return Repetitions(name, len(known["train_test_proportions"]), [{}], scorers, 2, False)
        case "validation_curve":
            return Repetitions(name, folds(), [{known["param_name"]: value} for value in known["param_range"]], scorers, 2, False)
        case "permutation_test_score":
            return Repetitions(name, folds() * (1 + known["n_permutations"]), [{}], scorers, 1, False)
    return Repetitions(name, 0, [{}], [], 0, False) if "parallel" in known else None  # its fits are not counted


def _check_table(frame: FrameType, estimator: Any, base: Any, found: Repetitions) -> None:
    """What each fit would refuse by types and names alone: scikit-learn would say that all fits failed, and put the reason below.

    base: the estimator, or what is around it: a Pipeline may change columns, others number the labels
    """
    X, y = frame.f_locals.get("X"), frame.f_locals.get("y")
    if estimator._inferred or estimator.schema is None or y is None:
        return
    if any(each.f_code.co_name == CROSS_PREDICT for each in frames()):  # which may have numbered the labels
        return
    if type(last_step(base)) is not type(estimator) or any(_setting(each, "schema", None) is not None for each in found.candidates):
        return
    if any(hasattr(value, "fit") for each in found.candidates for value in each.values()):  # another step in its place
        return
    schema = estimator._declared_schema("fit")
    rows.reviewed(schema, any(name.split("__")[-1] == "accept_draft" for name in _given_to_fits(frame)))
    if type(base) is type(estimator):
        rows.checked_table(X, y, schema, type(estimator).__name__)
    check_label_type(labels_column(y, schema.target.name), schema)


def _given_to_fits(frame: FrameType) -> Mapping[str, Any]:
    return getattr(getattr(frame.f_locals.get("routed_params"), "estimator", None), "fit", None) or {}


def _check_scorers(found: Repetitions, estimator: Any, y: Any) -> None:
    """Refuse what could score no fit: else every score is nan, and all fits are paid."""
    for each in found.scorers:
        called = each if isinstance(each, PrivateScorer) else getattr(each, "_score_func", getattr(each, "func", each))
        if called in (private_scorer, private_score):
            raise PlanError(
                f"{found.who}: scoring is {called.__name__}, which is no scorer. Nothing was spent. "
                "Use scoring=hedgerow.private_scorer(epsilon, budget)."
            )
        if isfunction(each):
            try:
                signature(each).bind(None, None, None)
            except TypeError as error:
                raise PlanError(
                    f"{found.who}: scoring is a function that cannot be called as scoring(model, X, y) ({error}), so every score would be "
                    "nan. Nothing was spent."
                ) from error
    _check_labelled(found, y)
    if estimator._inferred or estimator.schema is None:
        return
    classes = estimator._declared_schema("fit").target.classes
    for each in found.scorers:
        if isinstance(each, PrivateScorer):
            positive_code(classes, each.positive)
        elif getattr(y, "ndim", 1) == 1:
            _rehearse(each, classes, found.who)


def _rehearse(scorer: Any, classes: Sequence[Any], who: str) -> None:
    """A metric of scikit-learn, on made labels of the declared classes: whether it can be computed for them follows from them alone."""
    metric = getattr(scorer, "_score_func", None)
    if not getattr(metric, "__module__", "").startswith("sklearn."):
        return
    name = getattr(metric, "__name__", "a metric")
    given = getattr(scorer, "_kwargs", {})
    labels = np.array(list(classes) * 5)
    rows = np.zeros((len(labels), 1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = scorer(DummyClassifier(strategy="stratified", random_state=0).fit(rows, labels), rows, labels)
        why = "" if np.isfinite(value) else "it would be nan"
    except (ValueError, TypeError) as error:
        why = str(error).strip().split("\n")[0][:200].rstrip(".")
    if not why:
        return
    if len(classes) > 2:
        instead = "f1_macro, balanced_accuracy, neg_log_loss or roc_auc_ovr, which are for more than two classes"
    else:
        needs = "" if getattr(scorer, "_response_method", "predict") == "predict" else f", response_method={scorer._response_method!r}"
        told = "" if "pos_label" in given else f"make_scorer({name}, pos_label={classes[-1]!r}{needs}) of sklearn.metrics, or "
        instead = f"{told}accuracy, roc_auc or neg_log_loss"
    raise PlanError(
        f"{who}: scoring is {name}, which cannot be computed for the classes that the schema declares "
        f"({', '.join(map(repr, classes[:6]))}): {why}. Every score would be nan. Nothing was spent. Use scoring={instead}; where the rows "
        f"are private, private_scorer(epsilon, budget, metric=…, positive={classes[-1]!r})."
    )


def _check_labelled(found: Repetitions, y: Any) -> None:
    """An exact look at the labels, where exact scores are looks at them, too."""
    scored: list[Any] = [getattr(each, "_score_func", None) for each in found.scorers if not isinstance(each, PrivateScorer)]
    metrics = [each.__name__ for each in scored if getattr(each, "__module__", "").startswith("sklearn.")]
    if y is None or not metrics or getattr(y, "ndim", 1) != 1 or not where_missing(as_array(y)).any():
        return
    raise PlanError(
        f"{found.who}: some labels (y) are missing, and {metrics[0]} of scikit-learn refuses such rows, so every score would be nan. "
        "Nothing was spent. Leave scoring out, for the accuracy on the labelled rows; or use private_scorer(epsilon, budget, metric=…), "
        "which does not count the others; or keep the labelled rows alone: X[y.notna()], y[y.notna()]."
    )


def _checked_candidates(found: Repetitions, base: Any) -> list[Any]:
    """One model for each candidate. One that its estimator would refuse: its scores would be nan, and the fits of the others are paid.

    base: what the candidates are set on: the estimator, or what is around it
    """
    models = []
    for each in found.candidates:
        if not each:
            models.append(base)
            continue
        model = clone(base).set_params(**clone(dict(each), safe=False))  # as scikit-learn does
        for part in (model, *model.get_params(deep=True).values()):
            try:
                if hasattr(part, "_check_settings"):
                    part._check_settings()
            except HedgerowError as error:
                plain = ", ".join(f"{name}={value!r:.60}" for name, value in each.items() if isinstance(value, PLAIN))
                raise PlanError(
                    f"{found.who}: a candidate{f' ({plain})' if plain else ''} would be refused, and the others paid for. Nothing was "
                    f"spent. Leave it out of the search, or put it right: {error}"
                ) from error
        models.append(model)
    return models


def _check_processes(parallel: Parallel | None, budgets: Sequence[Budget | None], who: str) -> None:
    in_memory = [each for each in budgets if each is not None and not isinstance(each, BudgetFile)]
    if (
        in_memory
        and parallel is not None
        and parallel.n_jobs not in (None, 1)
        and not getattr(parallel._backend, "supports_sharedmem", False)
    ):
        raise PlanError(
            f"{who}: n_jobs is {parallel.n_jobs}, and a Budget in memory cannot be shared by several processes. Nothing was spent. Use "
            "hedgerow.BudgetFile(path) for the estimator and the scorer, which all processes share; or n_jobs=1; or threads: "
            'with joblib.parallel_config("threading").'
        )


def _check_budgets(found: Repetitions, fits: Sequence[Sequence[Fits]], estimator: Any) -> None:
    """Fits and scores, of which one budget may pay for both."""
    needs = needs_of_fits(fits, found.folds, found.refit)
    times = found.fits * found.scored
    needs += [
        Need(each.budget, times * each.epsilon, Fraction(0), f"{times} scores") for each in found.scorers if isinstance(each, PrivateScorer)
    ]
    check_budgets(found.who, needs, f"Ask for fewer folds or candidates or a smaller ε for each, or {instead_of_a_search(estimator)}")


def _say_several_budgets(found: Repetitions, estimator: Any) -> None:
    """The folds are the same people: what fits and scores spend adds up for them. Told once in a process."""
    others = [each.budget for each in found.scorers if isinstance(each, PrivateScorer)]
    if estimator.budget is None or all(key_of(each) == key_of(estimator.budget) for each in others) or "budgets" in said:
        return
    said.add("budgets")
    warnings.warn(
        f"{found.who}: the estimator and the scorer have two budgets, and the rows that are learnt from and scored are of the same people, "
        "so neither shows what they have spent: the sum does. Give the same budget to both. (This is said once.)",
        NoBudgetWarning,
        stacklevel=2,
    )


def _check_persons(frame: FrameType, estimator: Any, who: str) -> None:
    """Rows of one person in what is learnt from and in what is scored: no loss of privacy, but scores that are too good.

    Splits that were made beforehand may have been made by person. Of scikit-learn's splitters those without "Group" in their names ignore
    groups.
    """
    person = None if estimator._inferred or estimator.schema is None else estimator._declared_schema("fit").person
    routed, cv = frame.f_locals.get("routed_params"), frame.f_locals.get("cv")
    if person is None or routed is None or type(cv).__name__ in ("_CVIterableWrapper", "PredefinedSplit"):
        return
    kind, missing = type(cv), routed.splitter.split.get("groups") is None
    if missing or (kind.__module__.startswith("sklearn.") and "Group" not in kind.__name__):
        why = "no groups are given" if missing else f"{kind.__name__} ignores groups"
        warnings.warn(
            f"{who}: the schema says that {person!r} names the person of each row, and {why}, so rows of one person may be "
            "learnt from and scored: scores look better than they are for new persons. Use cv=GroupKFold(5) of scikit-learn and "
            f"groups=X[{person!r}].",
            SharedPersonsWarning,
            stacklevel=2,
        )


def _setting(candidate: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    """Of an estimator inside of a pipeline it is called forest__epsilon."""
    return next((value for key, value in candidate.items() if key.split("__")[-1] == name), otherwise)
