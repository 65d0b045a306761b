"""Rows of a declared table as a matrix of numbers, for any scikit-learn estimator. Everything is taken from the schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hedgerow.errors import SchemaError, TableError
from hedgerow.schema.attributes import Categorical, Numeric
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.coders import number_coder
from hedgerow.schema.columns import columns_of, rows_as_array
from hedgerow.schema.schema import Schema


class SchemaEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that learns nothing: the columns of its result are a function of the schema alone.

    categorical: "onehot" makes a column of zeros and ones for each declared value and for the `other` and `missing`
                 branches, and a row without a branch has zeros in all of them; "codes" makes one column of whole numbers,
                 and a row without a branch has a number of its own, one above the last branch
    numeric:     "value" keeps the number, moved to the nearest bound; "cells" gives the number of its cell, and a missing
                 one has a number of its own, one above the last cell
    bins:        equal-width cells of numeric attributes that declare no edges

    A missing number as "value" is the middle of its bounds. Where the schema names a branch for missing values, one more
    column says that it was missing.

    Data frames and mappings are read by the declared names, in any order; arrays by position.
    """

    def __init__(self, schema: Any = None, bins: int = 10, categorical: str = "onehot", numeric: str = "value") -> None:
        self.schema = schema
        self.bins = bins
        self.categorical = categorical
        self.numeric = numeric

    def fit(self, X: Any = None, y: Any = None) -> SchemaEncoder:
        """Check the settings. No row is read."""
        for name, value, known in (
            ("categorical", self.categorical, ("onehot", "codes")),
            ("numeric", self.numeric, ("value", "cells")),
        ):
            if value not in known:
                raise SchemaError(f"{name}: got {value!r}; expected {known[0]!r} or {known[1]!r}.")
        self.codebook_ = Codebook(self._declared_schema(X), self.bins)
        self.n_features_in_ = len(self.codebook_.schema.names)
        self.feature_names_in_ = np.array(self.codebook_.schema.names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """One row of numbers for each row of X: whole numbers if no column keeps its values, else floats."""
        check_is_fitted(self, "codebook_")
        schema, X = self.codebook_.schema, self._as_table(X)
        codes = self.codebook_.encode(X)
        dtype = np.float64 if self._keeps_values else np.int64
        columns = columns_of(X, schema.names, dates=schema.dates)
        blocks: list[NDArray[Any]] = []
        for j, attribute in enumerate(schema.attributes):
            if isinstance(attribute, Numeric) and self.numeric == "value":
                coder = number_coder(attribute, 1)
                blocks.append(_values(coder.numbers(coder.guarded(columns[j], attribute.name)), attribute))
            elif isinstance(attribute, Categorical) and self.categorical == "onehot":
                blocks.append(codes[:, j, None] == np.arange(self.codebook_.sizes[j], dtype=codes.dtype))
            else:
                blocks.append(codes[:, j, None])
        return np.concatenate(blocks, axis=1, dtype=dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """ "name" for a column of numbers or codes, "name=value" for a column of zeros and ones."""
        check_is_fitted(self, "codebook_")
        if input_features is not None and list(input_features) != list(self.feature_names_in_):
            same_length = len(input_features) == self.n_features_in_
            wrong = "is not equal to feature_names_in_" if same_length else f"should have length equal to {self.n_features_in_}"
            raise SchemaError(f"input_features {wrong}: the schema declares {', '.join(self.feature_names_in_)}.")
        return np.array([name for names in self._names_of_columns() for name in names], dtype=object)

    def attribute_of_column(self) -> NDArray[np.int64]:
        """Which attribute each column tells of: its place in the schema."""
        check_is_fitted(self, "codebook_")
        return np.repeat(np.arange(self.n_features_in_), [len(names) for names in self._names_of_columns()])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value has a declared behaviour
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _keeps_values(self) -> bool:
        return self.numeric == "value" and any(isinstance(attribute, Numeric) for attribute in self.codebook_.schema.attributes)

    def _names_of_columns(self) -> list[list[str]]:
        """The columns that each attribute becomes."""
        columns = []
        for attribute, labels in zip(self.codebook_.schema.attributes, self.codebook_.labels, strict=True):
            if isinstance(attribute, Categorical) and self.categorical == "onehot":
                columns.append([f"{attribute.name}={label}" for label in labels])
            elif isinstance(attribute, Numeric) and self.numeric == "value" and attribute.missing is not None:
                columns.append([attribute.name, f"{attribute.name}={attribute.missing}"])
            else:
                columns.append([attribute.name])
        return columns

    def _declared_schema(self, X: Any) -> Schema:
        if isinstance(self.schema, (str, Path)):
            return Schema.load(self.schema)
        if not isinstance(self.schema, Schema):
            raise SchemaError(f"schema: got {self.schema!r}; expected a hedgerow.Schema or the path of a TOML file.")
        return self.schema

    def _as_table(self, X: Any) -> Any:
        """A frame or mapping as it is; anything else as an array that scikit-learn finds in order."""
        if isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape")):
            return X
        if not hasattr(X, "__array__") and not hasattr(X, "toarray"):  # scikit-learn has its own words about sparse matrices
            X = rows_as_array(X, list(self.feature_names_in_))
        X = check_array(X, dtype=None, ensure_all_finite=False)
        if X.shape[1] != self.n_features_in_:
            raise TableError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input, "
                f"one for each declared attribute: {', '.join(self.feature_names_in_)}."
            )
        return X


def _values(numbers: NDArray[np.float64], attribute: Numeric) -> NDArray[np.float64]:
    """The numbers within their bounds and, where a branch is named for them, which ones were missing."""
    missing = np.isnan(numbers)
    middle = attribute.low + (attribute.high - attribute.low) / 2
    values = np.where(missing, middle, np.clip(numbers, attribute.low, attribute.high))
    return values[:, None] if attribute.missing is None else np.stack([values, missing.astype(np.float64)], axis=1)
