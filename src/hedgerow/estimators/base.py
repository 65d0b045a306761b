"""What all estimators share: schema, checks that cost nothing, prediction from the release."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hedgerow.accounting.loss import exact_delta, exact_epsilon
from hedgerow.accounting.meter import Budget, Reservation
from hedgerow.accounting.noise import noise_of, variance_of
from hedgerow.accounting.zcdp import rho_for
from hedgerow.engines.draft import column_names, draft_from_table
from hedgerow.engines.engine import Engine, Progress
from hedgerow.engines.files import CSVTable, TableFile
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import is_place, open_place
from hedgerow.engines.person_ids import person_column
from hedgerow.engines.remote import RemoteSource, check_remote_sampler, remote_schema
from hedgerow.errors import (
    BudgetError,
    HedgerowWarning,
    PlanError,
    SchemaError,
    SchemaMismatchWarning,
    TableError,
    UnreviewedSchemaWarning,
)
from hedgerow.growers import rdt
from hedgerow.inference.coverage import not_counted
from hedgerow.mechanisms.coins import SYSTEM, Coins, random_name
from hedgerow.mechanisms.noise import sampler_named
from hedgerow.private_table import PrivateTable, is_private_table, private_table, reserved
from hedgerow.queries import Best
from hedgerow.release.certificate import TableName, certificate_of, declared_rows, no_certificate, part_of
from hedgerow.release.release import Release, class_array
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.columns import columns_of, one_column, rows_as_array
from hedgerow.schema.schema import Schema, text_of
from hedgerow.settings import one_of, whole
from hedgerow.trees.forest import CountedForest, Grown
from hedgerow.trees.plan import Plan

INFER = "infer"
SHARED = {"schema", "epsilon", "delta", "bins", "budget", "sampler", "random_state", "n_jobs"}  # settings that are not the algorithm's own


class ForestClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all classifiers here. After `fit`, everything is answered from `release_`."""

    release_: Release
    classes_: NDArray[Any]
    schema: Any
    bins: int
    random_state: Any
    n_jobs: int | None
    _coins: Coins = SYSTEM  # tests may set a seeded one; the release then says so

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None, accept_draft: bool = False) -> Any:
        """Learn from a data frame, mapping or array with labels y; from files, fit("data.csv"), fit("data/*.parquet"); from a database,
        fit(hedgerow.SQLTable(…)); or from a Spark DataFrame. What is not in memory is read where it is, in a few passes. A table of
        an owner's service stays there: only verbs are asked, and only noisy answers come back.

        A data frame or mapping that holds the target column needs no y. `accept_draft=True` takes a schema with unreviewed
        entries, which is refused otherwise; the release then claims no differential privacy.
        """
        with closing(self._engine_for(X, y, progress, accept_draft)) as engine:
            self.release_ = self._train(engine)
        self.classes_ = class_array(engine.codebook.schema)
        return self

    def _engine_for(self, X: Any, y: Any, progress: Progress | None, accept_draft: bool) -> Engine:
        """Where the rows are, with everything checked that can be checked without reading them."""
        if is_place(X) or is_private_table(X):
            if y is not None:
                raise TableError("fit: with a file or a database, y must be None: the labels are its target column.")
            engine = self._elsewhere(X) if is_private_table(X) else self._place(X, progress, accept_draft)
            names = engine.codebook.schema.names
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
            return engine
        X, y, persons = self._checked(X, y)
        schema = self._schema_for(X, y, accept_draft)
        _check_label_kind(y, schema)
        return MemoryRows(X, y, self._codebook(schema), self._threads(), progress, persons, self._person_key(schema))

    def _place(self, X: Any, progress: Progress | None, accept_draft: bool) -> Engine:
        codebook = self._codebook(_reviewed(self._declared_schema("fit(file)"), accept_draft))
        return open_place(X, codebook, self._threads(), progress, self._person_key(codebook.schema))

    def _elsewhere(self, X: Any) -> Any:
        raise PlanError(f"fit: {type(self).__name__} needs exact counts, which no private table gives. Use an estimator that keeps ε.")

    def _person_key(self, schema: Schema) -> bytes:
        """What decides which rows of a person are kept: fresh for each request, the same for all its looks."""
        return b"" if schema.person is None else self._coins.bytes(16)

    @abstractmethod
    def _train(self, engine: Engine) -> Release: ...

    @abstractmethod
    def plan(self, rows: int | None = None) -> Plan: ...

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "release_")
        if isinstance(X, (str, os.PathLike, CSVTable)):
            codes = TableFile(X, list(self.release_.schema.names), dialect=self.release_.schema.csv).codes(self.release_.codebook)
            return self.release_.predict_codes_proba(codes, self._threads())
        X = self._checked_rows(X)
        return self.release_.predict_proba(X, self._threads())

    def predict(self, X: Any) -> NDArray[Any]:
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value has a declared behaviour
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ------------------------------------------------------------ checks that read no row

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _rng(self) -> np.random.Generator:
        """Public randomness for the structure. Noise never comes from here."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        return np.random.default_rng(seed)

    def _declared_schema(self, what: str) -> Schema:
        if isinstance(self.schema, Schema):
            return self.schema
        if isinstance(self.schema, (str, Path)) and self.schema != INFER:
            return Schema.load(self.schema)
        if self.schema is None or self.schema == INFER:
            raise SchemaError(
                f"{what}: needs a declared schema, got {self.schema!r}. Pass hedgerow.Schema(...) or the path of a TOML file; "
                "`hedgerow schema draft` writes a first one to review."
            )
        raise SchemaError(f"schema: got {self.schema!r}; expected a Schema, a path, or \"infer\".")

    def _schema_for(self, X: Any, y: Any, accept_draft: bool) -> Schema:
        if isinstance(self.schema, str) and self.schema == INFER:
            return draft_from_table(X, y, _free_name("target", X))
        return _reviewed(self._declared_schema("fit"), accept_draft)

    def _codebook(self, schema: Schema) -> Codebook:
        return Codebook(schema, whole("bins", self.bins))

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """X, y and the persons' ids as columns, their shapes compared. Values are looked at only where the schema is inferred."""
        inferred = isinstance(self.schema, str) and self.schema == INFER
        persons = None
        person = None if inferred else self._declared_schema("fit").person
        if person is not None:
            schema = self._declared_schema("fit")
            if isinstance(X, np.ndarray) or not _has_column(X, person):
                raise TableError(
                    f"fit: the schema names the persons in the column {person!r}, which the table does not have; expected a data "
                    "frame or a mapping with that column."
                )
            persons = person_column(X, person)
            wanted = [*schema.names, *([schema.target.name] if y is None else [])]
            X = _select(X, wanted)
        if y is None and not inferred and not isinstance(X, np.ndarray):
            schema = self._declared_schema("fit")
            if _has_column(X, schema.target.name):
                y, X = columns_of(X, [schema.target.name])[0], _select(X, schema.names)
        if y is None:
            raise TableError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give the labels, or a data frame "
                "that holds the declared target column."
            )
        if inferred:
            # No privacy is claimed for inferred schemas, so scikit-learn may look at the values.
            checked_X, y = check_X_y(X, y, dtype=None, ensure_all_finite=False)
            check_classification_targets(y)
            X = X if _is_frame(X) else checked_X
        elif not _is_frame(X):
            X = rows_as_array(X, len(self._declared_schema("fit").names))
        columns_of(X, self._declared_schema("fit").names if not inferred else column_names(X))
        self._check_columns(X, reset=True)
        y = one_column(y, "y")
        if len(y) != (len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)):
            raise TableError("fit: X and y do not have the same number of rows.")
        return X, y, persons

    def _checked_rows(self, X: Any) -> Any:
        X = without_person(X, self.release_.schema)
        if not _is_frame(X):
            X = X if isinstance(X, np.ndarray) or hasattr(X, "__array__") else rows_as_array(X, self.n_features_in_)
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


class PrivateForestClassifier(ForestClassifier):
    """Base of the estimators that keep ε: everything that can be refused is refused before the budget is touched."""

    epsilon: Any
    delta: Any = 0  # an estimator that has Gaussian noise takes it as a parameter; 0 is pure ε
    budget: Budget | None
    sampler: str

    _algorithm: str
    _vote: str

    @abstractmethod
    def _plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan: ...

    @abstractmethod
    def _grow(self, table: PrivateTable, plan: Plan) -> Grown: ...

    def _elsewhere(self, X: Any) -> Any:
        """Rows that stay with their owner: only verbs go there, and noisy answers come back."""
        if not isinstance(X, RemoteSource):
            raise PlanError("fit: got a private table of rows that are here; expected the rows themselves, or a table of hedgerow.connect.")
        check_remote_sampler(self.sampler)
        if getattr(self, "sensitivity", "global") == "local":
            raise PlanError('sensitivity: got "local", whose ε is not proven: its choices are not answered from afar. Use "global".')
        own = None if self.schema is None or self.schema == INFER else self._declared_schema("fit")
        return X.engine_for(self._codebook(remote_schema(X, own)))

    def _used_delta(self, codebook: Codebook) -> Fraction:
        """The δ of the guarantee: what was asked for, unless the estimator does better without it."""
        return exact_delta(self.delta)

    def plan(self, rows: int | None = None) -> Plan:
        """What `fit` would build and what it costs. Needs no data; `rows` is an assumed size where none is declared."""
        schema = self._declared_schema("plan")
        public = schema.rows is not None and rows is None
        rows = schema.rows if rows is None else whole("rows", rows)
        return self._plan(self._codebook(schema), exact_epsilon(self.epsilon), rows, public)

    def tune(
        self, X: Any, y: Any = None, *, grid: Mapping[str, Sequence[Any]], share: Any = 0.3, accept_draft: bool = False
    ) -> Any:
        """Choose settings privately, then fit with the best: `share` of ε pays for the search, the rest for the forest.

        Every combination in the grid is trained with an equal part of four fifths of that share; the last fifth pays for one
        private choice of the one that gets the most rows right. Every look is charged and stands in the certificate.
        """
        part = exact_epsilon(share, "share")
        if exact_delta(self.delta):
            raise PlanError("tune: a search is paid in pure ε. Set delta=0, or choose the settings yourself and call fit.")
        if not part < 1:
            raise PlanError(f"share: got {share!r}; expected a number between 0 and 1.")
        fixed = SHARED & set(grid)
        unknown = set(grid) - set(self.get_params())
        if fixed or unknown:
            known = ", ".join(sorted(set(self.get_params()) - SHARED))
            next_step = f"expected settings of the algorithm: {known}." if known else f"{type(self).__name__} has nothing to tune: use fit."
            raise PlanError(f"grid: {', '.join(sorted(fixed | unknown))} cannot be tuned; {next_step}")
        settings = list(ParameterGrid({name: list(values) for name, values in grid.items()}))
        if len(settings) < 2:
            raise PlanError("grid: got fewer than two combinations; expected a choice, such as {'max_depth': [3, 5]}.")
        with closing(self._engine_for(X, y, None, accept_draft)) as engine:
            self.release_ = self._train(engine, settings, part)
        self.classes_ = class_array(engine.codebook.schema)
        return self

    def _train(
        self,
        engine: Engine,
        settings: Sequence[Mapping[str, Any]] = (),
        share: Fraction = Fraction(0),
        name: TableName | None = None,
    ) -> Release:
        """Plan, charge, grow. With `settings` to choose from, `share` of ε pays for trying them first."""
        codebook, schema = engine.codebook, engine.codebook.schema
        epsilon, delta = exact_epsilon(self.epsilon), self._used_delta(codebook)
        sampler_named(self.sampler, self._coins)
        if delta:
            rho_for(epsilon, delta)  # refuses what has no ρ
            if self.sampler != "hedgerow":
                raise PlanError(
                    f'sampler: got {self.sampler!r}; Gaussian noise (delta above 0) is drawn by sampler="hedgerow" alone. Nothing was '
                    "spent. Use that one, or set delta=0."
                )

        def plan_of(estimator: Any, amount: Fraction) -> Plan:
            # With a private n the smallest table stands in: what is too large for it is too large for any.
            plan: Plan = estimator._plan(codebook, amount, schema.rows or 1, schema.rows is not None)
            return plan

        tried = [clone(self).set_params(**setting) for setting in settings]
        trial = epsilon * share * Fraction(4, 5) / max(1, len(tried))
        plans = [(estimator, plan_of(estimator, trial)) for estimator in tried]
        finals = [plan_of(estimator, epsilon * (1 - share)) for estimator in tried or [self]]
        _ = codebook.coders  # whatever could fail about the schema fails here
        budget = self.budget if self.budget is not None else Budget(epsilon, delta)
        if not isinstance(budget, Budget):
            raise PlanError(f"budget: got {budget!r}; expected a hedgerow.Budget or BudgetFile.")
        if schema.unreviewed:
            warnings.warn(
                "domains were read from private data (" + ", ".join(schema.unreviewed) + "): the release claims no "
                "differential privacy. Declare and review a schema to get a guarantee.",
                UnreviewedSchemaWarning,
                stacklevel=4,
            )
        what = f"{'tune and ' if tried else ''}fit {self._algorithm}"
        reservation = reserved(engine, budget, epsilon, what, delta)  # charge, then look
        table = self._private_table(engine, reservation)
        best = 0
        if tried:
            forests = [estimator._release_of(estimator._grow(table, plan), plan, codebook) for estimator, plan in plans]
            best = table.ask(Best([forest.predict_codes for forest in forests]), epsilon * share / 5)
            self.set_params(**settings[best])
        grown = self._grow(table, finals[best])
        release = self._release_of(grown, finals[best], codebook)
        if tried:
            release.chosen["tuned"] = f"the best of {len(tried)} settings, by private choice"
        part = part_of(
            reservation.events,
            requested=epsilon,
            delta=delta,
            sampler=table.sampler,
            secret=table._secret,
            unreviewed=schema.unreviewed,
            public_rows=declared_rows(schema.rows),
            person=schema.person,
            rows_per_person=schema.k,
            assumed=engine.assumed,
            id=random_name(self._coins),
            name=name,
            released=grown.released,
        )
        release.certificate = certificate_of([part])
        expected = schema.rows if name is None else None  # a declared number is that of the whole table, not of a batch
        self._settled(release, reservation, release.released.get("rows", expected))
        return release

    def _private_table(self, engine: Engine, reservation: Reservation) -> PrivateTable:
        return private_table(engine, reservation, self._coins, self.sampler)

    def _release_of(self, grown: Grown, plan: Plan, codebook: Codebook) -> Release:
        """The forest as a release that claims nothing yet."""
        return Release(
            grown.forest,
            no_certificate("not certified"),
            algorithm=self._algorithm,
            vote=self._vote,
            parameters=parameters_of(plan, codebook),
            chosen=grown.chosen,
            correction=grown.correction,
        )

    def _settled(
        self, release: Release, reservation: Reservation, rows: int | None, counted: CountedForest | None = None
    ) -> None:
        """The counts are paid for: they are kept before anything is said, since a warning may be made an error.

        rows: how many there should be, declared or noisy; without a number the best-filled tree stands in
        counted: what was counted just now, if the release holds more than that
        """
        problems: list[tuple[str, type[Warning]]] = []
        self.release_, self.classes_ = release, class_array(release.schema)
        try:
            reservation.settle()
        except (BudgetError, OSError) as error:
            problems.append((f"what was not used could not be given back to the budget: {error}", HedgerowWarning))
        sd = max((variance_of(noise_of(event)) ** 0.5 for event in reservation.events if event.verb == "rows"), default=0.0)
        lost = not_counted(counted or release.forest, rows, sd)
        if lost is not None:
            problems.append((lost, SchemaMismatchWarning))
        for text, category in problems:
            warnings.warn(text, category, stacklevel=5)


def parameters_of(plan: Plan, codebook: Codebook) -> dict[str, Any]:
    """What the user set, as a release states it; how many tables were planned for stands in a plan alone."""
    settings = {name: value for name, value in asdict(plan.settings).items() if name != "tables"}
    return {**settings, "bins": codebook.bins}


def _reviewed(schema: Schema, accept_draft: bool) -> Schema:
    if schema.unreviewed and not accept_draft:
        raise SchemaError(
            f"schema: the entries {', '.join(schema.unreviewed)} were read from data and are not reviewed. Check them and "
            "delete their `unreviewed` lines, or say fit(..., accept_draft=True), which claims no differential privacy."
        )
    return schema


class GreedyForestClassifier(PrivateForestClassifier):
    """Base of the private estimators whose structure is chosen privately: their plan is a list of charges, not of trees."""

    @abstractmethod
    def _greedy_plan(self, codebook: Codebook, epsilon: Fraction) -> Plan: ...

    def _plan(self, codebook: Codebook, epsilon: Fraction, rows: int | None, public: bool) -> Plan:
        return self._greedy_plan(codebook, epsilon)


def without_person(X: Any, schema: Schema) -> Any:
    """The declared columns of a table that says whose its rows are: the id is no attribute, and a prediction does not need it."""
    named = schema.person is not None and not isinstance(X, np.ndarray) and _has_column(X, schema.person)
    return _select(X, schema.names) if named else X


def _is_frame(X: Any) -> bool:
    return isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape"))


def _has_column(X: Any, name: str) -> bool:
    if isinstance(X, Mapping):
        return name in X
    return name in getattr(X, "column_names", getattr(X, "columns", ()))


def _select(X: Any, names: Sequence[str]) -> Any:
    """The declared columns of a table that holds its own labels, so that rows to predict need no label."""
    columns_of(X, names)
    if isinstance(X, Mapping):
        return {name: X[name] for name in names}
    import narwhals as nw

    return nw.from_native(X, eager_only=True).select(list(names)).to_native()


def _free_name(name: str, X: Any) -> str:
    while _has_column(X, name):
        name += "_"
    return name


def rdt_settings(estimator: Any) -> rdt.Settings:
    """The settings that the plain and the private random decision trees share, checked."""
    return rdt.Settings(
        whole("n_estimators", estimator.n_estimators),
        None if estimator.max_depth is None else whole("max_depth", estimator.max_depth),
        one_of("numeric_splits", estimator.numeric_splits, ("bins", "thresholds")),
        whole("max_leaves", estimator.max_leaves),
    )


def _check_label_kind(y: Any, schema: Schema) -> None:
    """Numbers as labels where text is declared (or the reverse) would train well and predict labels that never match."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    text = all(isinstance(value, str) for value in schema.target.classes)
    numbers = all(text_of(value) not in ("true", "false") and not isinstance(value, str) for value in schema.target.classes)
    if (kind in "iuf" and text) or (kind == "U" and numbers):
        raise TableError(
            f"labels: y holds {'numbers' if text else 'text'}, but the schema declares the classes "
            f"{', '.join(map(repr, schema.target.classes))}. "
            "Predictions are the declared objects: declare them with the type that y has."
        )
