"""What scikit-learn has put around an estimator: a pipeline, a search, a calibration. An estimator is told nothing of it, and what is
around it may look at private rows without noise. So the functions that are running are asked (the call stack), before anything is paid.

A meta-estimator that runs its fits in other threads or processes is not always seen; cross-validation and searches are, there too.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from inspect import isfunction
from types import FrameType
from typing import Any

from numpy.typing import NDArray

from hedgerow import formatting
from hedgerow.accounting.loss import exact_delta, exact_epsilon, text_of_loss
from hedgerow.accounting.meaning import sentence
from hedgerow.engines.engine import Engine
from hedgerow.engines.remote import RemoteEngine
from hedgerow.errors import ExactScoreWarning, LargeEpsilonWarning, NoBudgetWarning, PlanError, RepeatedRowsWarning, TransformerWarning
from hedgerow.estimators.class_order import sorted_classes
from hedgerow.estimators.pipelines import last_step, names_of_steps, refuse_steps, steps_in_front
from hedgerow.estimators.stack import frames
from hedgerow.evaluation.scorer import A_THRESHOLD, PrivateScorer
from hedgerow.schema.columns import has_row_numbers

said: set[str] = set()  # what was told once in this process
LARGE = 20  # an ε above this protects hardly at all

_THRESHOLD = (
    "TunedThresholdClassifierCV", "it chooses a threshold by exact scores of the rows",
    A_THRESHOLD,
)  # fmt: skip
_CALIBRATION = (
    "CalibratedClassifierCV", "it learns from the rows, without noise, how to change probabilities",
    "a HedgerowClassifier as it is: where there are rows enough (its plan says so) its probabilities are scaled privately, though those of "
    "a rare class may stay too low or too high; private_calibration tells, and thresholds of private_score do not depend on it",
)  # fmt: skip
_STACKING = (
    "StackingClassifier", "its last estimator learns from the rows without noise", "the mean of the predict_proba of several forests",
)  # fmt: skip
_SELECTION = (
    "a selection of columns", "it fits again and again, on fewer columns than the schema declares",
    "a schema without the columns that you know to be of no use, or model.feature_importances_ of one fit, and another schema",
)  # fmt: skip
_ONE_OF_MANY = (
    "OneVsRestClassifier or OneVsOneClassifier", "it fits once for each class or two, and shows each fit other labels",
    "the estimator alone: a forest takes any number of classes, and one fit is paid once",
)  # fmt: skip
_SELF_TRAINING = (
    "SelfTrainingClassifier", "which rows it gives labels, and how often it fits, depends on other rows, without noise",
    "one fit with all rows: those without a label are not counted",
)  # fmt: skip
_CHAIN = (
    "ClassifierChain", "it gives each fit after the first the labels before as columns, which no schema declares",
    "one fit for each label, with a schema of its own",
)  # fmt: skip
REFUSED = {  # by the module, and the name of a function or of the class whose method runs; "" is any function of the module
    ("sklearn.calibration", ""): _CALIBRATION,
    ("sklearn.model_selection._classification_threshold", "_fit_and_score_over_thresholds"): _THRESHOLD,
    ("sklearn.model_selection._classification_threshold", "TunedThresholdClassifierCV"): _THRESHOLD,
    ("sklearn.ensemble._stacking", ""): _STACKING,
    ("sklearn.feature_selection._rfe", ""): _SELECTION,
    ("sklearn.feature_selection._sequential", ""): _SELECTION,
    ("sklearn.multiclass", ""): _ONE_OF_MANY,
    ("sklearn.semi_supervised._self_training", ""): _SELF_TRAINING,
    ("sklearn.multioutput", "ClassifierChain"): _CHAIN,
}
BAGGING, VOTING, MULTI_OUTPUT = "sklearn.ensemble._bagging", "sklearn.ensemble._voting", "sklearn.multioutput"
WORKERS = (  # module, the function that makes estimators and fits them, those in front of it where nothing is hidden, and whose it is
    (BAGGING, "_parallel_build_estimators", ("_fit",), "BaggingClassifier"),
    (MULTI_OUTPUT, "_fit_estimator", ("fit",), "MultiOutputClassifier"),
    (MULTI_OUTPUT, "_partial_fit_estimator", ("partial_fit",), "MultiOutputClassifier"),
)
OF_PROBABILITIES = ("decision_function", "predict_proba", "predict_log_proba")
VALIDATION, CROSS_PREDICT = "sklearn.model_selection._validation", "cross_val_predict"


def check_surroundings(estimator: Any, no_guarantee: bool = False) -> str | None:
    """Refuse, or warn about, what is around the fit of an estimator that keeps ε. Nothing is paid yet.

    no_guarantee: take rows that a step in front has learnt from, which is refused otherwise
    The reason for which what it releases can claim no guarantee, or None.
    """
    numbering, predicted = "", False
    refuse_around()
    _refuse_workers()
    found = steps_in_front(estimator)
    for frame in frames():
        module, caller = frame.f_globals.get("__name__", ""), frame.f_locals.get("self")
        if module == BAGGING:
            check_bagging(frame.f_locals.get("ensemble", caller))
            numbering = "BaggingClassifier"
        if module == VOTING or (module == VALIDATION and frame.f_locals.get("method") in OF_PROBABILITIES):
            numbering = numbering or ("VotingClassifier" if module == VOTING else CROSS_PREDICT)
        if module == VALIDATION and frame.f_code.co_name in ("_fit_and_score", "_incremental_fit_estimator"):
            _check_scorer(frame, estimator)
        predicted = predicted or (module == VALIDATION and frame.f_code.co_name == "_fit_and_predict")
    if numbering and (numbering != CROSS_PREDICT or estimator._numbered is None):
        check_numbered(estimator, numbering)
    if predicted:
        say_exact(
            CROSS_PREDICT,
            "cross_val_predict: a score or a table of its predictions beside the labels is an exact look at the rows held out, which no "
            "budget pays for. Where they are private, use cross_val_score(…, scoring=hedgerow.private_scorer(epsilon, budget)).",
        )
    if not found:
        return None
    if not no_guarantee:
        refuse_steps(found)
    names = names_of_steps(found)
    warnings.warn(
        f"fit: {names}, in front of this estimator, learnt from the rows without noise and unpaid, so the release claims no differential "
        "privacy.",
        TransformerWarning,
        stacklevel=4,
    )
    return f"the rows were changed before by what had learnt from them without noise ({names})"


def _refuse_workers() -> None:
    """What makes its estimators in threads or processes of its own: there nothing of what is around it is seen."""
    running = {(frame.f_globals.get("__name__", ""), frame.f_code.co_name) for frame in frames()}
    for module, worker, begins, who in WORKERS:
        if (module, worker) in running and not {(module, name) for name in begins} & running:
            raise PlanError(
                f"fit: {who}(n_jobs=…) fits in threads or processes of its own, where what is around it is not seen, nor what all fits "
                f"cost. Nothing was spent. Give n_jobs to the estimator inside of it, which uses all processors, and not to {who}."
            )


def refuse_around() -> None:
    for frame in frames():
        module, caller = frame.f_globals.get("__name__", ""), frame.f_locals.get("self")
        for name in ("", frame.f_code.co_name, type(caller).__name__):
            if (module, name) in REFUSED:
                who, why, instead = REFUSED[module, name]
                raise PlanError(f"fit: {who} is around this estimator: {why}, which no budget pays for. Nothing was spent. Use {instead}.")


def check_bagging(ensemble: Any) -> None:
    """A row that is drawn twice adds twice what the noise hides; columns that are drawn stand in another order."""
    if getattr(ensemble, "bootstrap", False):
        raise PlanError(
            "fit: BaggingClassifier draws rows with repetition, so that one person's row would count several times, and ε would not hold. "
            "Nothing was spent. Use the estimator alone, which grows many trees; or BaggingClassifier(…, bootstrap=False, "
            "max_samples=0.5), of which every fit is charged."
        )
    if getattr(ensemble, "bootstrap_features", False):
        raise PlanError(
            "fit: BaggingClassifier(bootstrap_features=True) draws columns, and hands them on without their names: they would be taken for "
            "others. Nothing was spent. Leave it out: each tree asks questions of its own about the columns."
        )


def check_numbered(estimator: Any, who: str) -> None:
    classes = [] if estimator._inferred or estimator.schema is None else list(estimator._declared_schema("fit").target.classes)
    if classes and sorted_classes(estimator._declared_schema("fit")).tolist() != list(range(len(classes))):
        raise PlanError(
            f"fit: {who} of scikit-learn hands the classes over as the numbers 0, 1, …, and the schema declares "
            f"{', '.join(map(repr, classes[:6]))}. Nothing was spent. Declare the classes as {list(range(len(classes)))[:6]} and give such "
            "labels; or fit and predict without it."
        )


def numbered_classes(estimator: Any) -> NDArray[Any] | None:
    """The classes that cross_val_predict has put numbers for into the labels, where it clones this estimator; else None.

    With them each row gets its own label back, so that this tells nothing about others.
    """
    for frame in frames():
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) == (VALIDATION, CROSS_PREDICT) and frame.f_locals.get("encode"):
            own = last_step(frame.f_locals.get("estimator")) is estimator  # what is around it would compare predictions with the numbers
            return getattr(frame.f_locals.get("le"), "classes_", None) if own else None
    return None


def _check_scorer(frame: FrameType, estimator: Any) -> None:
    """Cross-validation or a search: its scores are charged, or they are free looks."""
    scorer, scored = frame.f_locals.get("scorer"), frame.f_locals.get("estimator")
    private = [isinstance(each, PrivateScorer) for each in scorers_of(scorer)]
    if any(private) and last_step(scored) is not estimator:
        raise PlanError(
            "scoring: private_scorer scores an estimator of hedgerow, alone or as the last step of a Pipeline; got one inside of "
            f"{type(scored).__name__}, which it could not score. Nothing was spent. Cross-validate the estimator itself; or fit what is "
            "around it once, on a part of the rows, and give what it has fitted (such as best_estimator_) to private_score, with others."
        )
    if all(private):
        return
    if all(mine or isfunction(each) for each, mine in zip(scorers_of(scorer), private, strict=True)):
        say_exact(
            "own scoring",
            "scoring by a function of your own: unless it asks hedgerow.private_score, every score is a look at the rows held out, which "
            "no budget pays for, and what is chosen by them is covered by no certificate.",
        )
    elif frame.f_locals.get("parameters") is not None:
        say_exact(
            "search",
            "a search by exact scores: every score is a look at the rows held out, which no budget pays for, and what is chosen by them "
            f"is covered by no certificate. Where the rows are private, use scoring=hedgerow.private_scorer(epsilon, budget); or "
            f"{instead_of_a_search(estimator)}.",
        )
    else:
        say_exact(
            "cross-validation",
            "cross-validation with exact scores: every score is a look at the rows held out, which no budget pays for. Where they are "
            "private, use scoring=hedgerow.private_scorer(epsilon, budget).",
        )


def instead_of_a_search(estimator: Any) -> str:
    """What costs less than fits and scores of many candidates."""
    if set(estimator._algorithm.defaults) <= {"max_passes"}:
        name = type(estimator).__name__
        return f"do not search: {name} has nothing to tune but max_passes. Fit it once, and score it once by private_score on other rows"
    return "use model.tune(X, y, grid=…), which pays for a whole search out of the ε of one fit"


def scorers_of(scorer: Any) -> list[Any]:
    """One scorer, or those of several metrics."""
    return list(getattr(scorer, "_scorers", scorer if isinstance(scorer, dict) else {"": scorer}).values())


def say_exact_score() -> None:
    """Of a score in cross-validation it was said when the fit began."""
    if any(frame.f_globals.get("__name__") == VALIDATION for frame in frames()):
        return
    say_exact(
        "score",
        "score: it is an exact look at these rows, which no budget pays for. Where they are private, use "
        "hedgerow.private_score(model, X, y, epsilon=…, budget=…), or in a search scoring=hedgerow.private_scorer(epsilon, budget).",
    )


def say_learning_around() -> None:
    """What is around a fitted model (a frozen one) may learn from its predictions and labels: `refuse_around` sees fits alone."""
    for frame in frames():
        module, caller = frame.f_globals.get("__name__", ""), type(frame.f_locals.get("self")).__name__
        found = REFUSED.get((module, "")) or REFUSED.get((module, caller))
        if found is not None and frame.f_code.co_name in ("fit", "_fit"):
            who, why, instead = found
            say_exact(who, f"{who}: {why}, which no budget pays for. Where these are private, use {instead}.")


def say_exact(what: str, text: str) -> None:
    if what not in said:
        said.add(what)
        warnings.warn(f"{text} (This is said once.)", ExactScoreWarning, stacklevel=4)


def say_no_budget(estimator: Any, engine: Engine) -> None:
    """As the command line does, but once in a process. Of rows at an owner's service, the ledger there keeps the total."""
    if estimator.budget is not None or isinstance(engine, RemoteEngine) or "budget" in said:
        return
    said.add("budget")
    loss = text_of_loss(exact_epsilon(estimator.epsilon), exact_delta(estimator.delta))
    warnings.warn(
        f"fit: no budget: nothing adds up the {loss} of this fit and what others on the same table spend. Make one "
        "hedgerow.Budget(epsilon=TOTAL), or a BudgetFile, and give it to all of them as budget=… (This is said once.)",
        NoBudgetWarning,
        stacklevel=5,
    )


def say_repeated_rows(estimator: Any, X: Any) -> None:
    """Of row numbers alone, which pandas made: what else an index holds may be about people. Where persons are named, they are counted."""
    index: Any = getattr(X, "index", None)
    if not has_row_numbers(index) or index.is_unique:
        return
    if estimator._inferred or estimator.schema is None or estimator._declared_schema("fit").person is None:
        warnings.warn(
            "fit: numbers of rows (the index of the data frame) occur several times. If tables were put together, nothing is wrong "
            "(pandas.concat(…, ignore_index=True) numbers them anew). If rows were copied or drawn with repetition, as to make a rare "
            "class frequent, ε does not hold for them: of a person with k rows the loss is k · ε. To favour a class, "
            "predict(X, class_weight=…) costs nothing.",
            RepeatedRowsWarning,
            stacklevel=5,
        )


def say_large_epsilon(estimator: Any) -> None:
    """Once in a process."""
    epsilon = exact_epsilon(estimator.epsilon)
    if epsilon > LARGE and "large" not in said:
        said.add("large")
        warnings.warn(
            f"fit: {formatting.loss(epsilon, Fraction(0))} is {sentence(epsilon)}. (This is said once.)", LargeEpsilonWarning, stacklevel=5
        )
