"""Training without scikit-learn, the one table of algorithms, and what else reads it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from strategies import small_schema, small_table

import hedgerow
from hedgerow import Budget, Release
from hedgerow.cli.audit_replay import Audited
from hedgerow.cli.options import Algorithm as AlgorithmOption
from hedgerow.errors import PlanError, SchemaError, SchemaMismatchWarning, TableError
from hedgerow.estimators import all_estimators
from hedgerow.estimators.names import ESTIMATORS, PRIVATE, estimator_named
from hedgerow.growers import hedgerow as hedgerow_grower
from hedgerow.mechanisms.coins import SeededCoins
from hedgerow.training.algorithms import ALGORITHMS, UPDATES, titled
from hedgerow.training.fit import fit, train
from hedgerow.training.method import ExactMethod, MergeableMethod, PrivateMethod
from hedgerow.training.planning import plan
from hedgerow.training.recipe import Recipe
from hedgerow.training.rows import open_rows
from hedgerow.training.shared_plans import public_plan, rebuild
from hedgerow.training.tuning import combinations

every = pytest.mark.parametrize("name", ALGORITHMS)
private = pytest.mark.parametrize("name", PRIVATE)
SHARED = {"schema", "epsilon", "delta", "bins", "budget", "sampler", "random_state", "n_jobs"}
SMALL: dict[str, dict[str, Any]] = {"dpdf": {"max_depth": 3, "min_rows": 20}, "private-id3": {"max_depth": 2}}

# ---------------------------------------------------------------- the table


@every
def test_an_estimator_has_the_settings_and_defaults_of_the_table(name: str) -> None:
    algorithm, estimator = ALGORITHMS[name], estimator_named(name)
    parameters = inspect.signature(estimator).parameters
    assert {each: parameters[each].default for each in parameters.keys() - SHARED} == dict(algorithm.defaults)
    assert parameters["bins"].default == algorithm.bins
    assert ("epsilon" in parameters, "delta" in parameters) == (algorithm.private, algorithm.delta)
    assert estimator._algorithm is algorithm
    assert estimator.__name__ == algorithm.estimator
    needed = {each for each, found in parameters.items() if found.default is inspect.Parameter.empty}
    assert needed == ({"schema", "epsilon"} if algorithm.private else set())


@every
def test_what_keeps_epsilon_is_in_the_private_room(name: str) -> None:
    algorithm = ALGORITHMS[name]
    method: Any = algorithm.method if algorithm.private else algorithm.exact_method
    assert isinstance(method, PrivateMethod if algorithm.private else ExactMethod)
    assert type(method).__module__.startswith(f"hedgerow.training.{'private' if algorithm.private else 'exact'}.")
    assert isinstance(method, MergeableMethod) == algorithm.updates
    with pytest.raises(PlanError, match="exact counts"):
        _ = algorithm.exact_method if algorithm.private else algorithm.method


def test_all_lists_of_algorithms_are_the_table() -> None:
    from hedgerow.audit.algorithms import ALGORITHMS as AUDITED
    from hedgerow.curator.http.requests import Algorithm as Asked
    from hedgerow.curator.web.descriptions import ALGORITHMS as OFFERED

    keep = [name for name, each in ALGORITHMS.items() if each.private]
    assert list(ESTIMATORS) == [str(each) for each in AlgorithmOption] == list(ALGORITHMS)
    assert {each.estimator for each in ALGORITHMS.values()} == set(all_estimators())
    assert [str(each) for each in Audited] == [*ALGORITHMS, "all"]
    assert list(get_args(Asked)) == [name for name, _ in OFFERED] == keep
    assert all(words for _, words in OFFERED)
    assert set(AUDITED) == set(PRIVATE) == set(keep)
    assert titled(hedgerow_grower.ALGORITHM) is ALGORITHMS["hedgerow"]
    assert sorted(UPDATES) == ["hedgerow", "rdt", "snr"]


def test_the_commands_are_listed_with_their_own_words() -> None:
    from hedgerow.cli.commands import COMMANDS, loaded

    for name, listed in COMMANDS.items():
        command = loaded(name)
        said = (command.short_help or command.help).replace("\f", "").split("\n\n")[0]
        assert " ".join(said.split()) == listed.help, name


# ---------------------------------------------------------------- the functions


def recipe_of(name: str, **more: Any) -> Recipe:
    return Recipe.of(name, *([5] if ALGORITHMS[name].private else []), **{**SMALL.get(name, {}), **more})


@every
def test_a_function_trains_what_the_estimator_trains(name: str) -> None:
    """With the same coins, bit for bit."""
    X, y = small_table(400)
    schema = small_schema(rows=400)
    seeded = {"random_state": 3} if ALGORITHMS[name].seeded or ALGORITHMS[name].proposes else {}
    recipe, keeps = recipe_of(name, **seeded), ALGORITHMS[name].private
    model = estimator_named(name)(schema=schema, **({"epsilon": 5} if keeps else {}), **SMALL.get(name, {}), **seeded)
    model._coins = SeededCoins(4)
    expected = model.fit(X, y).release_
    if not keeps:
        assert fit(recipe, X, y, schema=schema).to_json() == expected.to_json()
        return
    coins = SeededCoins(4)
    engine = open_rows(recipe, X, y, schema=schema, coins=coins)
    assert train(recipe, engine, coins=coins).to_json() == expected.to_json()
    assert str(plan(recipe, schema)) == str(model.plan())


@private
def test_a_paid_release_is_kept_before_a_warning(name: str) -> None:
    X, y = small_table(4000)
    kept: list[Release] = []
    budget = Budget(50)
    with pytest.raises(SchemaMismatchWarning):  # half the labels are not declared, and the test set-up makes warnings errors
        fit(
            Recipe.of(name, 50, **SMALL.get(name, {})), X, np.where(y == "yes", "ja", "no"), schema=small_schema(rows=4000), budget=budget,
            keep=lambda release, chosen: kept.append(release),
        )  # fmt: skip
    assert kept[0].certificate.spent == budget.spent > 0


@private
def test_nothing_is_spent_on_what_is_refused(name: str) -> None:
    X, y = small_table(50)
    budget = Budget(1)
    cases: list[tuple[type[Exception], Recipe, Any, Any]] = [
        (SchemaError, recipe_of(name), (X, y), None),
        (TableError, recipe_of(name), (X, y[:-1]), small_schema()),
        (TableError, recipe_of(name), (X, None), small_schema()),
        (PlanError, recipe_of(name, bins=0), (X, y), small_schema()),
        (PlanError, recipe_of(name).changed(epsilon=None), (X, y), small_schema()),
    ]
    for error, recipe, rows, schema in cases:
        with pytest.raises(error):
            fit(recipe, *rows, schema=schema, budget=budget)
    assert budget.spent == 0


def test_a_recipe_knows_its_settings() -> None:
    with pytest.raises(PlanError, match="expected one of hedgerow, snr"):
        Recipe.of("magic", 1)
    with pytest.raises(PlanError, match="colour: the algorithm rdt has no such setting"):
        Recipe.of("rdt", 1, colour=3)
    assert Recipe.of("rdt", 1).settings == ALGORITHMS["rdt"].defaults
    with pytest.raises(PlanError, match="cannot be added up"):
        public_plan(Recipe.of("dpdf", 1), small_schema(2000))
    assert rebuild(public_plan(Recipe.of("snr", 1, random_state=1), small_schema(2000), tables=3))


def test_combinations_come_as_in_scikit_learn() -> None:
    from sklearn.model_selection import ParameterGrid

    grid = {"b": [1, 2], "a": ["x", "y", "z"], "c": [None]}
    assert combinations(grid) == list(ParameterGrid(grid))


# ---------------------------------------------------------------- what is imported


def imported(code: str) -> set[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(hedgerow.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\nmodules', *{{name.split('.')[0] for name in sys.modules}})"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    return set(done.stdout.rsplit("modules", 1)[1].split())


HEAVY = {"sklearn", "scipy", "joblib", "numba", "duckdb", "pyarrow", "pandas", "polars"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    X, y = small_table(300)
    fit(recipe_of("hedgerow"), X, y, schema=small_schema()).save(folder / "forest.json")
    fit(recipe_of("rdt", random_state=0), X, y, schema=small_schema()).save(folder / "trees.json")
    lines = [",".join(X), *(",".join(map(str, row)) for row in zip(*X.values(), strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def command(*words: object) -> str:
    return f"from hedgerow.cli import app\napp({list(map(str, words))!r}, standalone_mode=False)"


def test_reading_a_release_imports_nothing_heavy(files: Path) -> None:
    for words in (["rules", files / "trees.json"], ["show", files / "forest.json"], ["show", files / "trees.json"]):
        assert not HEAVY & imported(command(*words)), words


@pytest.mark.parametrize("forest", ["forest.json", "trees.json"])
def test_predicting_a_small_file_imports_its_reader_only(files: Path, forest: str) -> None:
    found = HEAVY & imported(command("predict", files / forest, files / "rows.csv"))
    assert found == {"duckdb", "pyarrow"}


@pytest.mark.slow
def test_training_imports_no_scikit_learn() -> None:
    code = "from hedgerow.training import counting, fit, planning, shared_plans\nfrom hedgerow.training.algorithms import ALGORITHMS\n"
    code += "for each in ALGORITHMS.values():\n    each.method if each.private else each.exact_method"
    assert not {"sklearn", "joblib", "pandas"} & imported(code)
    assert not HEAVY & imported("from hedgerow.training.algorithms import ALGORITHMS")
