"""What exports are tried on: a schema whose names and values are as hostile as they can be, every forest and vote on it, odd rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from streams import drawn_once

import hedgerow
from hedgerow import Categorical, Numeric, Release, Schema, Target
from hedgerow.errors import HedgerowWarning
from hedgerow.inference.vote import ADDITIVE, MOST_CONFIDENT, VOTES
from hedgerow.training.algorithms import ALGORITHMS
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.tree import TreeBuilder

TEXT = 'it\'s "q" \\ ; -- */ $x %s `'
HOSTILE = Schema(
    [
        Categorical(TEXT, ["a'b", 'c"d', "e\\'f", "g;--h", "$1", "line\nbreak", "*/ x", "ü – 不", "\\u0041", "{0}"], other="other"),
        Categorical("label", [0, 1, 2]),
        Categorical("probabilities", [True, False], missing="unknown"),
        Numeric('n "1"', -3, 7),
        Numeric("k0", 0, 1, [0, 0.1, 0.30000000000000004, 1 / 3, 0.9, 1], missing="none"),
        Numeric("Day", date="%d.%m.%Y", low="2020-01-01", high="2024-12-31"),  # type: ignore[arg-type]
    ],
    Target("cl'a\"ss", ["x'); DROP TABLE rows; --", 'y"', "z\nz"]),
)
NUMBERS = ('n "1"', "k0")
DAY = "Day"


def odd_rows(rows: int, seed: int = 1, schema: Schema = HOSTILE) -> pd.DataFrame:
    """Declared values and undeclared ones, missing ones, numbers on edges, beyond bounds and none; dates that no calendar has."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for attribute in schema.attributes:
        if isinstance(attribute, Categorical):
            texts = [str(value) for value in attribute.values]
            odd = ["", None, "never heard of", "A'B", *(f"{text}.0" for text in texts if text.isdigit())]
            odd += [text.lower() for text in texts if text in ("True", "False")]
            pool = np.array([*texts * 3, *odd], dtype=object)
            columns[attribute.name] = pool[rng.integers(0, len(pool), rows)]
        elif attribute.date is None:
            numbers = rng.uniform(attribute.low - 1, attribute.high + 1, rows)
            odd_numbers = np.array([*attribute.cell_edges(5), np.nan, np.inf, -np.inf, 1e300, -0.0, 5e-324])
            odd_here = rng.random(rows) < 0.3
            numbers[odd_here] = odd_numbers[rng.integers(0, len(odd_numbers), odd_here.sum())]
            columns[attribute.name] = numbers
        else:
            columns[attribute.name] = [_date_text(rng) for _ in range(rows)]
    return pd.DataFrame(columns)


def _date_text(rng: np.random.Generator) -> str | None:
    odd = [
        None,
        "",
        "31.02.2021",
        "29.02.2020",
        "29.02.2023",
        "29.02.1900",
        "1.2.2022",
        "2022-01-03",
        "18500",
        "18500.5",
        "nonsense",
        "00.01.2021",
        "01.13.2021",
    ]
    if rng.random() < 0.2:
        return odd[rng.integers(0, len(odd))]
    day = date(2019, 6, 1) + timedelta(days=int(rng.integers(0, 2500)))
    return f" {day:%d.%m.%Y} " if rng.random() < 0.1 else f"{day:%d.%m.%Y}"


def labels_for(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Classes that depend on the rows."""
    first, number = frame.iloc[:, 0], frame.iloc[:, 3].fillna(0)
    risk = first.isin(["a'b", "g;--h", "line\nbreak"]).astype(int) + (number > 2) + (frame["label"] == "1") * (number < 0)
    return np.array(HOSTILE.target.classes, dtype=object)[np.clip(risk, 0, 2)]


@drawn_once
def training() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    frame = odd_rows(3000, seed=0)
    return frame, labels_for(frame)


@drawn_once
def release_of(name: str) -> Release:
    """One of NAMES. Many of the rows fit no branch, which is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        if name in ALGORITHMS:
            each = ALGORITHMS[name]
            settings: dict[str, Any] = {"epsilon": 8} if each.private else {}
            if name in ("rdt", "plain-rdt"):
                settings |= {"n_estimators": 3, "max_depth": 3, "random_state": 1}
            model = getattr(hedgerow, each.estimator)(schema=HOSTILE, **settings)
        elif name == BOOSTED:
            model = hedgerow.HedgerowClassifier(HOSTILE, epsilon=20, delta=1e-6, max_passes=6)
        elif name == ROOTS:
            return roots_alone()
        elif name == FOUR_TREES:
            model = hedgerow.DPDFClassifier(HOSTILE, epsilon=30, n_estimators=4, max_depth=3)
        else:
            return with_vote(release_of(FOUR_TREES), name.removeprefix(f"{FOUR_TREES}, "))
        release: Release = model.fit(*training()).release_
        return release


def roots_alone() -> Release:
    """Trees that ask nothing: every row gets the same."""
    forest = release_of("rdt").forest
    tree = TreeBuilder(forest.codebook.sizes).build()
    counts = (np.array([[3, 5, -1]]), np.array([[9, 2, 2]]))
    return with_vote(release_of("rdt"), MOST_CONFIDENT, CountedForest(forest.codebook, (tree, tree), counts, forest.noise))


def with_vote(release: Release, vote: str, forest: CountedForest | None = None) -> Release:
    return Release(forest or release.forest, release.certificate, algorithm=release.algorithm, vote=vote, parameters=release.parameters)


FOUR_TREES, BOOSTED, ROOTS = "four trees", "hedgerow, boosted", "roots alone"
NAMES = [*ALGORITHMS, *(f"{FOUR_TREES}, {vote}" for vote in VOTES if vote != ADDITIVE), BOOSTED, ROOTS]


def with_classes(release: Release, classes: list[Any]) -> Release:
    """The same forest for classes of another type."""
    codebook = release.codebook
    schema = replace(codebook.schema, target=Target("class", classes))
    forest = replace(release.forest, codebook=replace(codebook, schema=schema))
    return with_vote(release, release.vote, forest)


def of_yes_and_no() -> Release:
    """Of a text, `paid`, and of a truth value, `old`: a program that makes booleans of yes and no finds no text."""
    schema = Schema([Categorical("paid", ["no", "yes"]), Categorical("old", [False, True])], Target("ill", [0, 1]))
    paid, old = np.array(["no", "yes"] * 200), np.array([False, False, True, True] * 100)
    model = hedgerow.PrivateRDTClassifier(schema, 20, n_estimators=4, max_depth=2, random_state=0)
    release: Release = model.fit({"paid": paid, "old": old}, ((paid == "yes") ^ old).astype(int)).release_
    return release
