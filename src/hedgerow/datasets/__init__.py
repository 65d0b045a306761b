"""Public tables with public schemas, for tests, benchmarks and examples; nothing in them is private.

    from hedgerow import datasets

    datasets.names()
    nursery = datasets.load("nursery")          # from the folder named by HEDGEROW_DATA, or from OpenML
    endgames = datasets.load("chess-krk")       # computed, needs neither files nor a network
    records = datasets.patients(100_000, seed=1)

Every set comes as a `Dataset` with typed columns, a target and a schema that was written down beforehand,
never read from its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.datasets.chess import chess_krk
    from hedgerow.datasets.dataset import Dataset, declared_schema
    from hedgerow.datasets.medical import breast_cancer
    from hedgerow.datasets.patient_records import patients, patients_chunks
    from hedgerow.datasets.public import load_public
    from hedgerow.datasets.tictactoe import tic_tac_toe

__all__ = [
    "Dataset",
    "breast_cancer",
    "chess_krk",
    "declared_schema",
    "load",
    "load_public",
    "names",
    "patients",
    "patients_chunks",
    "tic_tac_toe",
]

# Imported on first use: `import hedgerow.datasets` must not pay for NumPy or scikit-learn.
_HOME = {
    "Dataset": "dataset",
    "declared_schema": "dataset",
    "breast_cancer": "medical",
    "chess_krk": "chess",
    "load_public": "public",
    "patients": "patient_records",
    "patients_chunks": "patient_records",
    "tic_tac_toe": "tictactoe",
}

_PUBLIC = (
    "adult",
    "bank-marketing",
    "car",
    "chess-krk",
    "cmc",
    "connect-4",
    "german-credit",
    "mushroom",
    "nursery",
    "tic-tac-toe",
    "votes",
)
_COMPUTED = {"chess-krk": "chess_krk", "tic-tac-toe": "tic_tac_toe"}
_OTHER = {"breast-cancer": "breast_cancer", "patients": "patients"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def names() -> list[str]:
    """The names that `load` knows."""
    return sorted([*_PUBLIC, *_OTHER])


def load(name: str, *, drop: Sequence[str] = (), **options: Any) -> Dataset:
    """The set `name`, without the attributes in `drop`.

    options: `rows` and `seed` for "patients"; `fetch` for the sets of the UCI repository (see `load_public`).

    "chess-krk" and "tic-tac-toe" are computed, with the rows of the UCI file in its order; an explicit
    `fetch` option reads a stored copy instead.
    """
    if name in _PUBLIC and (options or name not in _COMPUTED):
        maker, arguments = "load_public", [name]
    elif name in _COMPUTED or name in _OTHER:
        maker, arguments = {**_COMPUTED, **_OTHER}[name], []
    else:
        from hedgerow.errors import TableError

        raise TableError(f"data set: got the name {name!r}; expected one of {', '.join(names())}.")
    dataset: Dataset = __getattr__(maker)(*arguments, **options)
    return dataset.without(drop)
