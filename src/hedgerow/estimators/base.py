"""What all estimators share: scikit-learn's habits around the plain functions of `hedgerow.training`."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hedgerow.engines.draft import as_array, column_names, draft_from_table
from hedgerow.engines.engine import Engine, Progress
from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.engines.table_check import where_missing
from hedgerow.errors import PlanError, SchemaError, TableError, UnknownValuesWarning
from hedgerow.estimators.class_order import class_order, in_columns, sorted_classes
from hedgerow.estimators.pipelines import given_to
from hedgerow.estimators.surroundings import numbered_classes
from hedgerow.evaluation.seen_rows import note_rows
from hedgerow.inference.class_weights import IN_FIT
from hedgerow.inference.coverage import TOLD_FROM, Unknown
from hedgerow.inference.vote import ADDITIVE
from hedgerow.mechanisms.coins import SYSTEM, Coins
from hedgerow.private_table import is_private_table
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.columns import check_fitted_order, columns_of, labels_column, one_column, rows_as_array
from hedgerow.schema.schema import Schema
from hedgerow.training import planning, rows
from hedgerow.training.algorithms import Algorithm
from hedgerow.training.recipe import Recipe
from hedgerow.training.value_cells import codebook_for
from hedgerow.trees.plan import Plan

INFER = "infer"


class ForestClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all classifiers here. After `fit`, everything is answered from `release_`."""

    release_: Release
    classes_: NDArray[Any]
    schema: Any
    bins: int | str
    n_jobs: int | None
    _algorithm: ClassVar[Algorithm]  # of the table of algorithms
    _coins: Coins = SYSTEM  # tests may set a seeded one; the release then says so
    _numbered: NDArray[Any] | None = None  # in cross_val_predict: the classes whose numbers its labels are

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        if "class_weight" in settings:
            raise PlanError(IN_FIT)
        return super().__new__(cls)

    @abstractmethod
    def __init__(self) -> None: ...

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        progress: Progress | None = None,
        accept_draft: bool = False,
        no_guarantee: bool = False,
        **refused: Any,
    ) -> Any:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : data frame, mapping of columns, array, path, SQLTable, Spark DataFrame or table of an owner's service
            The rows. Columns are found by their names; those of an array, which has none, must stand in the order of `schema.names`:
            `schema.check(X, y)`, the owner's own look, tells before anything is paid. Files, fit("data.csv"), fit("data/*.parquet"), a
            database, fit(hedgerow.SQLTable(…)), and a Spark DataFrame are read where they are, in a few passes. A table of an owner's
            service stays there: only noisy answers come back.
        y : array, optional
            The labels. A data frame or mapping that holds the target column needs none; of a file they are its target column.
        progress : callable, optional
            Is called with the share of the work that is done.
        accept_draft : bool, default=False
            Takes a schema with unreviewed entries, which is refused otherwise; the release then claims no differential privacy.
        no_guarantee : bool, default=False
            As the last step of a Pipeline: takes rows that a step in front has learnt from without noise, which is refused otherwise; the
            release then claims no differential privacy.

        Returns
        -------
        self
        """
        refuse_weights(type(self).__name__, refused)
        self._check_surroundings(X, no_guarantee)
        labels = y if self._numbered is None else self._numbered[np.asarray(y)]
        with self._remembered(X), closing(self._engine_for(X, labels, progress, accept_draft)) as engine:
            self._train(engine)
        self.classes_ = sorted_classes(engine.codebook.schema) if self._numbered is None else self._numbered
        return self

    def __sklearn_clone__(self) -> Any:
        copied = super().__sklearn_clone__()
        copied._numbered = numbered_classes(self)
        return copied

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build and what it costs. Needs no data; `rows` is an assumed size where none is declared."""
        return planning.plan(self._recipe(), self._declared_schema("plan"), rows)

    def predict(self, X: Any, class_weight: Any = None) -> NDArray[Any]:
        """The class of each row of X: a table as in `fit`, without labels, or a CSV or Parquet file.

        class_weight: probabilities are multiplied by these before the largest is taken; a dict, or "balanced" (`Release.weighted`)
        """
        shares = self._declared_shares(X)
        if class_weight is not None:
            shares = self.release_.weighted(shares, class_weight)
        return np.asarray(self.release_.classes[shares.argmax(axis=1)])  # of equal shares the class that the release takes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`, for each row of X."""
        return self._by_classes(self._declared_shares(X), 0.0)

    def _by_classes(self, declared: NDArray[np.float64], none: float) -> NDArray[np.float64]:
        """Columns in the order of `classes_`; none: of a class that is not declared"""
        schema = self.release_.schema
        return declared[:, class_order(schema)] if self._numbered is None else in_columns(declared, schema, self._numbered, none)

    def _declared_shares(self, X: Any) -> NDArray[np.float64]:
        """As the release has them: in the order in which the schema declares the classes."""
        check_is_fitted(self, "release_")
        if isinstance(X, (str, os.PathLike, CSVTable)):
            file = TableFile(X, list(self.release_.schema.names), dialect=self.release_.schema.csv)
            codes = file.codes(self.release_.codebook)
            _say_unknown(self.release_, codes, file.count_missing)
            return self.release_.predict_codes_proba(codes, self._threads())
        X = self._checked_rows(X)
        if self.release_.forest.united:  # a row may lack columns of some owners
            return self.release_.predict_proba(X, self._threads())
        codes = self.release_.codebook.encode(X, self._threads())
        _say_unknown(self.release_, codes, lambda names: _count_missing(X, self.release_.schema, names))
        return self.release_.predict_codes_proba(codes, self._threads())

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of `predict_proba`: −∞ for a class that has no chance."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on these rows, without those that have no label."""
        there = ~where_missing(as_array(y)) if getattr(y, "ndim", 1) == 1 else np.True_
        if there.all():
            return float(super().score(X, y, sample_weight))
        if not there.any():
            raise TableError("score: no row has a label; expected some that do.")
        encode = self.release_.codebook.encode_classes  # a class that is not declared is one that is never predicted
        true, predicted = encode(labels_column(y, self.release_.schema.target.name)), encode(self.predict(X))
        return float(np.average((true == predicted)[there], weights=None if sample_weight is None else np.asarray(sample_weight)[there]))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each attribute in what the forest tells about the class, from released numbers alone."""
        check_is_fitted(self, "release_")
        return np.array(list(self.release_.feature_importances().values()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value has a declared behaviour
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ------------------------------------------------------------ for training

    @abstractmethod
    def _train(self, engine: Engine) -> Release:
        """Train on these rows, and keep `release_`."""

    def _check_surroundings(self, X: Any, no_guarantee: bool = False) -> None:
        """Whatever is around an estimator without privacy, it has none to lose."""

    def _recipe(self) -> Recipe:
        """What is asked for, as the functions of training take it."""
        own = {name: getattr(self, name) for name in self._algorithm.defaults}
        price = getattr(self, "epsilon", None), getattr(self, "delta", 0)
        return Recipe(self._algorithm, own, self.bins, *price, getattr(self, "random_state", None))

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _codebook(self, schema: Schema, X: Any) -> Codebook:
        return codebook_for(self._recipe(), schema, X)

    def _engine_for(self, X: Any, y: Any, progress: Progress | None, accept_draft: bool) -> Engine:
        """Where the rows are, with everything checked that can be checked without reading them."""
        if rows.is_held(X, y):
            engine = self._elsewhere(X) if is_private_table(X) else self._place(X, progress, accept_draft)
            names = engine.codebook.schema.names
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
            return engine
        if self._inferred:
            X, y, persons = self._checked_to_infer(X, y)
            schema = draft_from_table(X, y, _free_name("target", X))
        else:
            schema = self._declared_schema("fit")
            X, y, persons = rows.checked_table(X, y, schema, type(self).__name__)
            self._check_columns(X, reset=True)
            rows.reviewed(schema, accept_draft)
        return rows.open_memory(X, y, persons, self._codebook(schema, X), self._threads(), progress, self._coins)

    @contextmanager
    def _remembered(self, X: Any) -> Iterator[None]:
        """Of what was learnt from, if it was: which table it is, and the order of its columns where that is not the schema's."""
        before = self.__dict__.get("release_")
        try:
            yield
        finally:
            release = self.__dict__.get("release_")
            if release is not None and release is not before:
                note_rows(self, given_to(self, X))
                self.__dict__.pop("_order_in_fit", None)
                order = None if self._inferred else rows.declared_order(X, release.schema)
                if order is not None and order != list(release.schema.names):
                    self._order_in_fit = order  # names, which the schema has, too

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A model that was pickled by an earlier version holds the names of columns in the order of its table."""
        super().__setstate__(state)
        release, names = self.__dict__.get("release_"), [str(name) for name in self.__dict__.get("feature_names_in_", ())]
        if release is not None and names != list(release.schema.names) and sorted(names) == sorted(release.schema.names):
            self._order_in_fit = names
            self.feature_names_in_ = np.array(release.schema.names, dtype=object)

    def _place(self, X: Any, progress: Progress | None, accept_draft: bool) -> Engine:
        codebook = self._codebook(rows.reviewed(self._declared_schema("fit(file)"), accept_draft), X)
        return rows.open_at(X, codebook, self._threads(), progress, self._coins)

    def _elsewhere(self, X: Any) -> Engine:
        own = None if self.schema is None or self._inferred else self._declared_schema("fit")
        return rows.open_elsewhere(self._recipe(), X, own, getattr(self, "sampler", "hedgerow"))

    # ------------------------------------------------------------ checks that read no row

    @property
    def _inferred(self) -> bool:
        return isinstance(self.schema, str) and self.schema == INFER

    def _declared_schema(self, what: str) -> Schema:
        if isinstance(self.schema, Schema):
            return self.schema
        if isinstance(self.schema, (str, Path)) and self.schema != INFER:
            return Schema.load(self.schema)
        if self.schema is None or self._inferred:
            raise rows.missing_schema(what, self.schema)
        name = type(self).__name__  # what was given may be the rows: its type is told, and nothing that it holds
        raise SchemaError(
            f'schema: got a {type(self.schema).__name__}; expected a Schema, the path of a TOML file, or "infer". Nothing was spent. Rows '
            f'are given to fit: {name}("schema.toml", …).fit(X, y); Schema.draft(table, "target") makes a first schema of them to review.'
        )

    def _checked_to_infer(self, X: Any, y: Any) -> tuple[Any, Any, None]:
        """As `checked_table`. No privacy is claimed for an inferred schema, so scikit-learn may look at the values."""
        if y is None:
            raise rows.missing_labels(type(self).__name__)
        checked_X, y = check_X_y(X, y, dtype=None, ensure_all_finite=False)
        check_classification_targets(y)
        X = X if rows.is_frame(X) else checked_X
        columns_of(X, column_names(X))
        self._check_columns(X, reset=True)
        y = one_column(y, "y")
        rows.check_lengths(X, y)
        return X, y, None

    def _checked_rows(self, X: Any) -> Any:
        X = rows.declared_only(X, self.release_.schema, bool(self.release_.forest.united), any_order=not self._inferred)
        if not rows.is_frame(X):
            check_fitted_order(getattr(self, "_order_in_fit", None), self.release_.schema.names, X)
            X = X if isinstance(X, np.ndarray) or hasattr(X, "__array__") else rows_as_array(X, self.release_.schema.names)
            X = check_array(X, dtype=None, ensure_all_finite=False)
        self._check_columns(X, reset=False)
        return X

    def _check_columns(self, X: Any, reset: bool) -> None:
        """scikit-learn's bookkeeping of names and number of columns; a mapping is checked by its declared names alone."""
        if not isinstance(X, Mapping):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.n_features_in_ = len(X)
            self.feature_names_in_ = np.array(list(X), dtype=object)


class ExactForestClassifier(ForestClassifier):
    """Base of the estimators without privacy: their counts are exact, and their releases say so."""

    def _train(self, engine: Engine) -> Release:
        self.release_ = self._algorithm.exact_method.train(self._recipe(), engine)
        return self.release_


def refuse_weights(who: str, given: Mapping[str, Any]) -> None:
    """Of what scikit-learn's estimators take in `fit`."""
    if given.get("sample_weight") is not None:
        raise PlanError(
            "sample_weight: a weight changes how much one row adds to the counts (the sensitivity), and so the noise that hides it. "
            "Nothing was spent. Leave it out; to favour a class, use predict(X, class_weight=…), which costs no ε."
        )
    unknown = [name for name in given if name != "sample_weight"]
    if unknown:
        raise TypeError(f"{who}.fit() got an unexpected keyword argument {unknown[0]!r}")


def _say_unknown(release: Release, codes: NDArray[Any], count_missing: Callable[[list[str]], list[int]]) -> None:
    """As `hedgerow predict` does: columns that could not be read are predicted as unknown, which nobody would notice."""
    if len(codes) < TOLD_FROM:
        return
    unknown = Unknown(release.codebook)
    unknown.add(codes)
    text = unknown.text(count_missing)
    if text is not None:
        warnings.warn(f"predict: {text}. These are predicted as the schema says for them.", UnknownValuesWarning, stacklevel=4)
    beyond = unknown.beyond_text(release.additive.most_rows) if release.vote == ADDITIVE else None
    if beyond is not None:
        warnings.warn(f"predict: {beyond}", UnknownValuesWarning, stacklevel=4)


def _count_missing(X: Any, schema: Schema, names: list[str]) -> list[int]:
    columns = dict(zip(schema.names, columns_of(X, schema.names, dates=schema.dates), strict=True))
    return [int(where_missing(as_array(columns[name])).sum()) for name in names]


def _free_name(name: str, X: Any) -> str:
    while rows.has_column(X, name):
        name += "_"
    return name
