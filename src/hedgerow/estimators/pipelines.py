"""What stands in front of an estimator in scikit-learn's Pipelines: a step that learns from rows does so without noise, and is refused."""

from __future__ import annotations

from collections.abc import Collection
from types import FrameType
from typing import Any

from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

from hedgerow.errors import PlanError
from hedgerow.estimators.stack import frames
from hedgerow.schema.columns import names_of

WITHOUT = "Where no guarantee is wanted: pipeline.fit(X, y, LAST_STEP__no_guarantee=True), with the name of the last step."


def _fits_pipeline(frame: FrameType) -> bool:
    return isinstance(frame.f_locals.get("self"), Pipeline) and frame.f_code.co_name.startswith("fit")


def steps_in_front(estimator: Any) -> list[Any]:
    """The steps that learn from rows, of all pipelines that are being fitted, whatever stands between them and an estimator."""
    running = list(frames())
    around = [frame for frame in running if _fits_pipeline(frame)]
    for frame in around:
        _check_names(frame, frame.f_locals["self"], estimator)
    return [step for frame in around for step in steps_that_learn(frame.f_locals["self"], _step_running(frame.f_locals["self"], running))]


def _step_running(pipeline: Pipeline, running: list[FrameType]) -> int:
    """Which step in front of the last one is being fitted, an estimator inside of it: later ones change nothing for it. Else the last."""
    known = (frame.f_locals for frame in running if frame.f_code.co_name == "_fit")
    return next((int(each["step_idx"]) for each in known if each.get("self") is pipeline and "step_idx" in each), len(pipeline.steps) - 1)


def check_in_front(estimator: Any, given: Collection[str] = ()) -> None:
    """The same before the first of several fits, which may run in threads or processes, where a pipeline around them is not seen.

    given: names of what scikit-learn hands to each fit
    """
    found = steps_in_front(estimator)
    if not any(name.split("__")[-1] == "no_guarantee" for name in given):
        refuse_steps(found)


def refuse_steps(found: list[Any]) -> None:
    """found: the steps in front of an estimator that learn from the rows"""
    if not found:
        return
    _refuse_settings(found)
    raise PlanError(
        f"fit: {names_of_steps(found)}, in front of this estimator, learnt from the rows without noise and unpaid, so what is released "
        "could claim no differential privacy. Nothing was spent. Leave it out: text is taken as it is, bounds, cells and missing values "
        "are declared in the schema, and trees need no scaling. Or use what works on each row alone, and declare in the schema the columns "
        'and values that it makes (numbers, of an encoder): a FunctionTransformer; SimpleImputer(strategy="constant", fill_value=…, '
        'keep_empty_features=True); OneHotEncoder(categories=[…], handle_unknown="ignore"); OrdinalEncoder(categories=[…], '
        f'handle_unknown="use_encoded_value", unknown_value=-1). {WITHOUT}'
    )


def names_of_steps(steps: list[Any]) -> str:
    return ", ".join(dict.fromkeys(type(step).__name__ for step in steps))


def _check_names(frame: FrameType, pipeline: Pipeline, estimator: Any) -> None:
    """Behind a ColumnTransformer columns stand in another order: without names they would be taken for each other. A column that a step
    has made and that no schema declares would be left out.
    """
    given: Any = frame.f_locals.get("X")
    passed: Any = frame.f_locals.get("Xt")
    last = pipeline.steps[-1][1] is estimator
    if last and hasattr(given, "columns") and hasattr(passed, "columns") and not estimator._inferred and estimator.schema is not None:
        schema = estimator._declared_schema("fit")
        known = {*names_of(given), *schema.names, schema.target.name, schema.person}
        made = [name for name in names_of(passed) if name not in known]
        if made:
            prefixed = any(name.partition("__")[2] in schema.names for name in made)
            keep = "Keep the names: verbose_feature_names_out=False for the ColumnTransformer. Or declare" if prefixed else "Declare"
            raise PlanError(
                f"fit: the steps in front of this estimator make the columns {', '.join(map(repr, made[:6]))}, which the schema does not "
                f"declare, so that nothing would be learnt from them. Nothing was spent. {keep} them, or leave the step out."
            )
    orders = any(hasattr(step, "transformers") for _, step in pipeline.steps[:-1])
    if orders and hasattr(given, "columns") and passed is not None and not hasattr(passed, "columns"):
        raise PlanError(
            "fit: ColumnTransformer, in front of this estimator, passes columns on without their names and in an order of its own, so that "
            'they would be taken for others. Nothing was spent. Keep the names: pipeline.set_output(transform="pandas"), and '
            "verbose_feature_names_out=False for the ColumnTransformer; a OneHotEncoder in it needs sparse_output=False and categories=[…]."
        )


def steps_that_learn(pipeline: Pipeline, end: int = -1) -> list[Any]:
    """What in front of its last step (of that number), or inside of a step there, learns from the rows on which it is fitted."""
    return [each for _, step in pipeline.steps[:end] for each in _learning(step)]


def _learning(step: Any) -> list[Any]:
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return []
    if isinstance(step, Pipeline):
        return [found for _, each in step.steps for found in _learning(each)]
    if isinstance(step, FeatureUnion):
        return [found for _, each in step.transformer_list for found in _learning(each)]
    if hasattr(step, "transformers"):  # a ColumnTransformer
        return [found for _, each, _ in step.transformers for found in _learning(each)]
    return [step] if get_tags(step).requires_fit and not (_given_categories(step) or _given_value(step)) else []


def _given_categories(step: Any) -> bool:
    """An encoder whose categories were given: a row's codes follow from the row alone, and no value of it raises an error."""
    return isinstance(step, (OneHotEncoder, OrdinalEncoder)) and not isinstance(step.categories, str) and not _telling_settings(step)


def _telling_settings(encoder: Any) -> list[tuple[str, str, str]]:
    """By which settings an encoder whose categories were given tells of rows: as it is, why, and what to set."""
    found = []
    if encoder.handle_unknown not in ("ignore", "infrequent_if_exist", "use_encoded_value"):
        ordinal = isinstance(encoder, OrdinalEncoder)
        instead = 'handle_unknown="use_encoded_value", unknown_value=-1' if ordinal else 'handle_unknown="ignore"'
        said = "a warning" if encoder.handle_unknown == "warn" else "an error"
        found.append((f'handle_unknown="{encoder.handle_unknown}"', f"a value that is not among them raises {said}", instead))
    for name in ("min_frequency", "max_categories"):
        value = getattr(encoder, name)
        if value is not None:
            found.append((f"{name}={value!r}", "which of them are put together depends on how often they occur", f"{name}=None"))
    if getattr(encoder, "drop", None) is not None:
        found.append((f"drop={encoder.drop!r}", "a warning names the columns that hold other values", "drop=None"))
    return found


def _refuse_settings(steps: list[Any]) -> None:
    """What of an encoder that was given its categories is to be set otherwise, before anything is said of learning."""
    for step in steps:
        if isinstance(step, (OneHotEncoder, OrdinalEncoder)) and not isinstance(step.categories, str):
            found = _telling_settings(step)
            raise PlanError(
                f"fit: {type(step).__name__}, in front of this estimator, was given its categories and learns none, but with "
                f"{'; with '.join(f'{setting}, {why}' for setting, why, _ in found)}: that tells of rows, without noise and unpaid. "
                f"Nothing was spent. Set {', '.join(instead for _, _, instead in found)}. {WITHOUT}"
            )


def _given_value(step: Any) -> bool:
    """An imputer of one value that was given. It keeps all columns: by default it drops those in which no row has a value."""
    return isinstance(step, SimpleImputer) and step.strategy == "constant" and step.keep_empty_features and not step.add_indicator


def last_step(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def given_to(estimator: Any, X: Any) -> Any:
    """What was given to `fit`: where a Pipeline around it has passed on X, what the Pipeline was given."""
    for frame in frames():
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and frame.f_code.co_name.startswith("fit") and caller.steps[-1][1] is estimator:
            X, estimator = frame.f_locals.get("X", X), caller
    return X
