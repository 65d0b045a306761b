"""Does the Hedgerow forest go on learning, with more rows and with more ε? And how much of its figures is owed to constants that were
chosen on the same sets? Three experiments, which docs/LEARNING.md reports."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import HedgerowClassifier, Numeric, Schema, Target
from hedgerow.datasets.public import FOLDER_VARIABLE
from hedgerow.growers import sizes
from hedgerow_experiments.document import Block
from hedgerow_experiments.experiment import Experiment, Found, Job, Result
from hedgerow_experiments.more_sets import MORE, loaded
from hedgerow_experiments.peers.tables import SETS as TEN

ALL_SETS = (*TEN, *(f"more/{name}" for name in MORE))
DELTA = "1e-6"
FOLDS, SMALL_BELOW, SMALL_REPETITIONS = 5, 3_000, 4  # sets with fewer rows than this have all five folds, four times; others one or two
NOT_PRIVATE = ""

# ------------------------------------------------------------ more rows

ROWS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
TEST_ROWS = 200_000
ROWS_SEEDS = 4


def family(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Twelve uniform numbers. The log-odds of the second class are a sum of two single effects and four interactions of two or three of
    them; the last two tell nothing."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 12))
    s = 2.0 * x - 1.0
    odds = 2.0 * s[:, 0] + 2.0 * np.sin(3.0 * s[:, 1])
    odds += 5.0 * s[:, 2] * s[:, 3] + 3.0 * np.where((x[:, 4] > 0.5) == (x[:, 5] > 0.3), 1.0, -1.0)
    odds += 3.0 * np.where((x[:, 6] > 0.4) & (x[:, 7] > 0.4), 1.0, -0.56) + 4.0 * s[:, 8] * np.sign(s[:, 9]) * (x[:, 0] > 0.5)
    return x, (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64)


def rows_jobs(quick: bool) -> list[Job]:
    seeds, rows = (1, ROWS[:3]) if quick else (ROWS_SEEDS, ROWS)
    return [{"rows": n, "seed": seed} for seed in range(seeds) for n in rows]


def rows_work(job: Job) -> Found:
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = family(job["rows"], 1_000 + job["seed"])
    test_X, test_y = family(TEST_ROWS, 0)
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(X.shape[1])], Target("y", (0, 1)))
    models: dict[str, Any] = {
        "delta": HedgerowClassifier(schema, 1, DELTA, random_state=job["seed"]),
        "pure": HedgerowClassifier(schema, 1, random_state=job["seed"]),
        "boosting": HistGradientBoostingClassifier(max_iter=1_000, early_stopping=True, random_state=job["seed"]),
    }
    with _quiet():
        return {name: round(float(np.mean(model.fit(X, y).predict(test_X) == test_y)), 5) for name, model in models.items()}


# ------------------------------------------------------------ more ε

EPSILONS = ("0.1", "0.5", "1", "2", "8", "64")
EPSILON_FOLDS = 2


def epsilon_jobs(quick: bool) -> list[Job]:
    sets = [name for name in ALL_SETS if name in ("votes", "tic-tac-toe", "cmc", "car")] if quick else ALL_SETS
    found: list[Job] = [{"set": name, "epsilon": epsilon, "delta": DELTA} for name in sets for epsilon in EPSILONS]
    found += [{"set": name, "epsilon": epsilon, "delta": "0"} for name in sets for epsilon in EPSILONS]
    return found + [{"set": name, "epsilon": NOT_PRIVATE, "delta": "0"} for name in sets]


def epsilon_work(job: Job) -> Found:
    return {"accuracy": accuracies(job["set"], job["epsilon"], job["delta"], EPSILON_FOLDS)}


# ------------------------------------------------------------ constants that were fixed without the set that is judged

VARIANTS: dict[str, dict[str, Any]] = {  # one constant of growers/sizes.py at a time; only what concerns δ > 0
    "as it is": {},
    "fewer trees": {"TREES_PER_ROOT": 3.5},
    "more trees": {"TREES_PER_ROOT": 7.0},
    "shallower": {"DEPTH_ADDED": 1.0},
    "deeper": {"DEPTH_ADDED": 3.0},
    "smaller steps": {"STEP": 0.2},
    "larger steps": {"STEP": 0.45},
    "less for the joint fit": {"JOINT_NU": 1.0},
    "more for the joint fit": {"JOINT_NU": 4.0},
    "fewer joint rounds": {"JOINT_ROUNDS": 8},
    "more joint rounds": {"JOINT_ROUNDS": 32},
    "joint fits seldom": {"ROWS_PER_TABLE": 80.0},
}
ROTATION_EPSILONS = ("0.5", "2")
ROTATION_FOLDS = 1


def rotation_jobs(quick: bool) -> list[Job]:
    sets = [name for name in ALL_SETS if name in ("votes", "tic-tac-toe", "cmc", "car")] if quick else ALL_SETS
    return [{"set": name, "variant": variant, "epsilon": epsilon} for variant in VARIANTS for name in sets for epsilon in ROTATION_EPSILONS]


def rotation_work(job: Job) -> Found:
    with constants(VARIANTS[job["variant"]]):
        return {"accuracy": accuracies(job["set"], job["epsilon"], DELTA, ROTATION_FOLDS)}


@contextmanager
def constants(changed: dict[str, Any]) -> Iterator[None]:
    """With other constants in this process; of those that differ by the kind of noise, that of Gaussian noise."""
    before = {name: getattr(sizes, name) for name in changed}
    for name, value in changed.items():
        setattr(sizes, name, before[name] | {True: value} if isinstance(before[name], dict) else value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(sizes, name, value)


# ------------------------------------------------------------ what they share


def accuracies(name: str, epsilon: str, delta: str, folds: int) -> list[float]:
    """By fold. The folds are the same for all; without ε it is boosting that is not private."""
    from sklearn.model_selection import StratifiedKFold

    columns, labels, schema = loaded(name)
    found = []
    with _quiet():
        parts = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels))
        private = SMALL_REPETITIONS if epsilon != NOT_PRIVATE else 1
        for number, (train, test) in enumerate(parts * private if len(labels) < SMALL_BELOW else parts[:folds]):
            if epsilon == NOT_PRIVATE:
                predicted = _boosting(columns, labels, schema, train, test)
            else:
                model = HedgerowClassifier(schema, epsilon, delta, random_state=number)
                model.fit({key: values[train] for key, values in columns.items()}, labels[train])
                predicted = model.predict({key: values[test] for key, values in columns.items()})
            found.append(round(float(np.mean(predicted == labels[test])), 5))
    return found


def _boosting(columns: dict[str, NDArray[Any]], labels: NDArray[Any], schema: Schema, train: Any, test: Any) -> NDArray[Any]:
    """With the settings that peers/local.py gives reasons for."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    numeric = np.array([isinstance(attribute, Numeric) for attribute in schema.attributes])
    coded = [
        np.unique(columns[a.name], return_inverse=True)[1] if not n else columns[a.name]
        for a, n in zip(schema.attributes, numeric, strict=True)
    ]
    X = np.column_stack(coded).astype(np.float64)
    model = HistGradientBoostingClassifier(early_stopping=False, l2_regularization=1.0, categorical_features=~numeric, random_state=0)
    return np.asarray(model.fit(X[train], labels[train].astype(str)).predict(X[test]))


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _setup(job: Job) -> str | None:
    if os.environ.get(FOLDER_VARIABLE):
        return None
    return f"{FOLDER_VARIABLE} is not set; it names the folder with the public sets."


def _rows_blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.learning_report import rows_blocks

    return rows_blocks(results)


def _epsilon_blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.learning_report import epsilon_blocks

    return epsilon_blocks(results)


def _rotation_blocks(results: Sequence[Result]) -> list[Block]:
    from hedgerow_experiments.learning_report import rotation_blocks

    return rotation_blocks(results)


ON_SETS = (
    f"`StratifiedKFold({FOLDS}, shuffle=True, random_state=0)`: all folds of sets with fewer than {SMALL_BELOW:,} rows, "
    f"{SMALL_REPETITIONS} times with new noise, the first {{}} of others, once. Schemas of the ten ship with the package; of the twelve "
    "of `more`, values and bounds are those of the public file."
)
EXPERIMENTS = (
    Experiment(
        "learning-rows", "More rows", "learning",
        f"Tables of a synthetic family with interactions (`family` in learning.py), {ROWS_SEEDS} of each size, ε = 1; accuracy on "
        f"{TEST_ROWS:,} further rows. Boosting is scikit-learn's HistGradientBoosting with early stopping, so that it grows "
        "as many trees as the rows bear.",
        (), rows_jobs, rows_work, _rows_blocks,
    ),
    Experiment(
        "learning-epsilon", "More ε", "learning", ON_SETS.format("two"), ALL_SETS,
        epsilon_jobs, epsilon_work, _epsilon_blocks, setup=_setup,
    ),
    Experiment(
        "learning-rotation", "Constants that were fixed without the set", "learning", f"δ = {DELTA}. {ON_SETS.format('one')}", ALL_SETS,
        rotation_jobs, rotation_work, _rotation_blocks, setup=_setup,
    ),
)  # fmt: skip
