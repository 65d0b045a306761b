"""The paper's kinds of global models by name, or any estimator of ours or of scikit-learn, ready to learn from rows of a declared table.

from hedgerow import global_model

model = global_model("naive bayes", schema).fit(pseudo_rows, labels)
model.predict(rows)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from hedgerow.errors import PlanError
from hedgerow.estimators.base import ForestClassifier
from hedgerow.estimators.local_tree import LocalTreeClassifier
from hedgerow.schema.attributes import Categorical
from hedgerow.sharing.global_models.conjunctive_rule import ConjunctiveRuleClassifier
from hedgerow.sharing.global_models.decision_table import DecisionTableClassifier
from hedgerow.sharing.global_models.encoder import SchemaEncoder
from hedgerow.sharing.global_models.naive_bayes import CodedNaiveBayes


def _no_more(encoder: SchemaEncoder) -> dict[str, Any]:
    return {}


def _codes_of_each_column(encoder: SchemaEncoder) -> dict[str, Any]:
    return {"min_categories": [size + 1 for size in encoder.codebook_.sizes]}  # one for what has no branch


def _columns_of_codes(encoder: SchemaEncoder) -> dict[str, Any]:
    attributes = encoder.codebook_.schema.attributes
    return {"categorical_features": [isinstance(attributes[place], Categorical) for place in encoder.attribute_of_column()]}


@dataclass(frozen=True)
class GlobalModel:
    """A kind of model: its estimator with our settings, how it wants its columns, and what it must know of the schema."""

    estimator: Any
    categorical: str = "onehot"
    numeric: str = "value"
    from_schema: Callable[[SchemaEncoder], dict[str, Any]] = _no_more


GLOBAL_MODELS: dict[str, GlobalModel] = {
    "decision tree": GlobalModel(LocalTreeClassifier()),  # C4.5, pruned as usual: what the paper's miner learns
    "cart": GlobalModel(DecisionTreeClassifier(min_samples_leaf=2)),
    "naive bayes": GlobalModel(CodedNaiveBayes(), "codes", "cells", _codes_of_each_column),
    "random forest": GlobalModel(RandomForestClassifier(100)),
    "decision table": GlobalModel(DecisionTableClassifier(), "codes", "cells"),
    "conjunctive rule": GlobalModel(ConjunctiveRuleClassifier(), "codes", "value", _columns_of_codes),
}


def global_model(model: Any, schema: Any, *, bins: int = 10, random_state: Any = None, **settings: Any) -> Pipeline:
    """A pipeline of two steps, "encoder" and "model", that learns from data frames, mappings or arrays of declared rows.

    model:        a name in GLOBAL_MODELS (spaces or hyphens), or any estimator of hedgerow or scikit-learn, of which a copy is used
    schema:       a Schema or the path of its file
    bins:         cells of numeric attributes without edges, for naive Bayes and decision tables
    random_state: for the models that have one
    settings:     of the model itself, such as max_depth=5
    """
    kind = _kind_of(model)
    encoder = SchemaEncoder(schema, bins, kind.categorical, kind.numeric).fit()
    estimator = clone(kind.estimator)
    known = estimator.get_params(deep=False)
    unknown = sorted(name for name in settings if name.split("__")[0] not in known)
    if unknown:
        raise PlanError(f"settings: got {', '.join(unknown)}; expected settings of {type(estimator).__name__}: {', '.join(known)}.")
    if random_state is not None and "random_state" in known:
        settings["random_state"] = random_state
    untouched = {name: value for name, value in kind.from_schema(encoder).items() if known[name] is None}
    estimator.set_params(**{**untouched, **settings})
    if isinstance(estimator, ForestClassifier):  # one of ours reads declared rows itself
        return Pipeline([("encoder", "passthrough"), ("model", estimator.set_params(schema=encoder.codebook_.schema))])
    return Pipeline([("encoder", encoder), ("model", estimator)])


def _kind_of(model: Any) -> GlobalModel:
    if isinstance(model, str):
        name = " ".join(model.lower().replace("-", " ").replace("_", " ").split())
        if name not in GLOBAL_MODELS:
            raise PlanError(f"global model: got {model!r}; expected one of {', '.join(GLOBAL_MODELS)}, or an estimator.")
        return GLOBAL_MODELS[name]
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise PlanError(f"global model: got {model!r}; expected the name of one, or an instance of an estimator.")
    for kind in GLOBAL_MODELS.values():
        if isinstance(model, type(kind.estimator)) or issubclass(type(kind.estimator), type(model)):
            return GlobalModel(model, kind.categorical, kind.numeric, kind.from_schema)
    return GlobalModel(model)
