"""Pseudo-data: rows that a miner makes from shared trees instead of from persons (Sharkey et al. 2008, 2.2 and 4).

    pgen      path by path: as many rows as the path has persons, its values where it asks, its classes (the paper's PGEN)
    basegen   rows from anywhere in the declared domain, each with the class that the tree or forest predicts (the paper's BASEGEN)
    forest    rows from the paths, as in pgen, but values that a path does not ask about are as frequent as other paths say; each with the
              class that the whole forest predicts

pgen keeps the numbers of every path and class. A model that is learned from the rows is nearer to a forest, or to noisy counts, with the
other two: a row of one random tree knows little of what the other trees ask, and noise in small leaves becomes wrong classes. (Which one
is the default was chosen with nursery, mushroom, votes and adult in view, the sets that our figures are about.)
Each tree of a forest describes all persons, so its rows are divided among the trees; the rows of several owners are added.

Only released numbers and public randomness go in: post-processing. A row is a function of the seed, the size and its place. Rows are made
in blocks, never all at once, and stand in an order in which each stretch has its share of every path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.inference.vote import Vote
from hedgerow.schema.codebook import Codebook
from hedgerow.sharing.pseudo.decoding import common_codebook, same_cells
from hedgerow.sharing.pseudo.sizes import class_weights, path_weights, whole_numbers, whole_numbers_by_row
from hedgerow.sharing.pseudo.values import NUMERIC, UNIFORM, Templates, shares_told
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.paths import Paths, paths_left, paths_of

PGEN, BASEGEN, FOREST = "pgen", "basegen", "forest"
METHODS = (PGEN, BASEGEN, FOREST)
COUNTS, HITS = "counts", "hits"
CLASSES = (COUNTS, HITS)
BLOCK = 65_536  # rows that have random numbers of their own: the unit in which rows are made
MAX_ROWS = 1 << 45
MANY_ROWS = 1_000_000_000  # more than that is not made because a file says so
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows: codes as `Codebook.encode` gives them, the numbers of numeric attributes by place, class codes."""

    codes: NDArray[np.unsignedinteger[Any]]
    numbers: dict[int, NDArray[np.float64]]
    classes: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.classes)

    def part(self, start: int, stop: int) -> Block:
        numbers = {j: column[start:stop] for j, column in self.numbers.items()}
        return Block(self.codes[start:stop], numbers, self.classes[start:stop])


@dataclass(frozen=True, eq=False)
class Model:
    """What one owner shared, as far as rows are made from it.

    trees: the paths of each tree
    rows:  how many persons they describe
    vote:  what it predicts with; None where there are only paths
    """

    codebook: Codebook
    trees: Sequence[Paths]
    rows: float
    vote: Vote | None = None


def model_of(forest: CountedForest, vote: Vote | None, removed: Sequence[NDArray[np.bool_]] | None = None) -> Model:
    """A forest with released counts, without the nodes that it does not predict with. Its (noisy) total is its size."""
    trees = [
        paths_of(forest, t) if removed is None or not removed[t].any() else paths_left(forest, t, removed[t])
        for t in range(len(forest.trees))
    ]
    return Model(forest.codebook, trees, max(float(forest.class_totals.sum()), 0.0), vote)


def model_of_paths(paths: Paths, vote: Vote | None = None) -> Model:
    """One tree or rule set of which only the paths are known."""
    return Model(paths.codebook, [paths], max(float(paths.totals.sum()), 0.0), vote)


@dataclass(frozen=True)
class Recipe:
    """How rows are made.

    rows:       in all; None: as many as the owners' tables have
    every_tree: the rows of each tree in full, so that a table is there once for each of its trees
    """

    method: str = PGEN
    rows: int | None = None
    numeric: str = UNIFORM
    classes: str = COUNTS
    seed: int = 0
    every_tree: bool = False

    def __post_init__(self) -> None:
        for what, known in (("method", METHODS), ("numeric", NUMERIC), ("classes", CLASSES)):
            if getattr(self, what) not in known:
                raise PlanError(f"{what}: got {getattr(self, what)!r}; expected one of {', '.join(known)}.")
        for what, least, most in (("rows", 0, MAX_ROWS), ("seed", 0, 2**128 - 1)):
            number = getattr(self, what)
            if number is not None and (isinstance(number, bool) or not hasattr(number, "__index__") or not least <= int(number) <= most):
                raise PlanError(f"{what}: got {number!r}; expected a whole number from {least} to {most}.")


@dataclass(eq=False)
class _Cells:
    """Rows that are alike, one cell after another: so many rows of a path with a class (−1: it will be predicted)."""

    path: list[NDArray[np.int64]] = field(default_factory=list)
    label: list[NDArray[np.int64]] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, path: NDArray[np.int64], label: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        there = rows > 0
        self.path.append(path[there])
        self.label.append(label[there])
        self.rows.append(rows[there])


class PseudoRows:
    """Pseudo-rows that can be made block by block. Making this object decides how many rows each path gets; no row is made yet.

    rows, of_model: how many in all, and from each model
    """

    def __init__(self, models: Sequence[Model], recipe: Recipe) -> None:
        if not models:
            raise PlanError("pseudo-data: got nothing to make them from; expected at least one release.")
        if recipe.method != PGEN and any(model.vote is None for model in models):
            raise PlanError(f"method: {recipe.method!r} needs predictions; of paths alone only {PGEN!r} can be made.")
        self.recipe, self.codebook = recipe, common_codebook([model.codebook for model in models])
        rng = self._rng(0)
        sizes = np.array([model.rows * (len(model.trees) if recipe.every_tree else 1) for model in models])
        self.rows = round(float(sizes.sum())) if recipe.rows is None else int(recipe.rows)
        if recipe.rows is None and self.rows > MANY_ROWS:
            raise PlanError(
                f"rows: the releases speak of {self.rows:,} rows, more than {MANY_ROWS:,}. If that is meant, give the number yourself."
            )
        if self.rows > MAX_ROWS:
            raise PlanError(f"rows: the releases speak of {self.rows} rows; at most {MAX_ROWS} can be made.")
        self.of_model = whole_numbers(sizes if sizes.sum() > 0 else np.ones(len(models)), self.rows, rng)
        self.templates: list[Templates] = []
        cells, self._first_path = _Cells(), [0]
        for model, rows in zip(models, self.of_model.tolist(), strict=True):
            self._plan(model, rows, cells, rng)
        # Paths are large, and not needed any more.
        self._predictors = [(same_cells(model.codebook, self.codebook), model.vote) for model in models]
        self._ends = np.cumsum(np.concatenate(cells.rows))
        self._path, self._label = np.concatenate(cells.path), np.concatenate(cells.label)
        if self.rows and (not len(self._ends) or self._ends[-1] != self.rows):
            raise PlanError("pseudo-data: no row can be on any path of a tree: its questions contradict each other.")
        self._stride = _coprime(round(self.rows * GOLDEN), self.rows)
        self._offset = int(rng.integers(max(self.rows, 1)))

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(int(self.recipe.seed), spawn_key=stream))

    def _plan(self, model: Model, rows: int, cells: _Cells, rng: np.random.Generator) -> None:
        first = self._first_path[-1]
        if self.recipe.method == BASEGEN:
            self.templates.append(Templates.of_everybody(model.codebook))
            cells.add(np.array([first]), np.array([-1]), np.array([rows]))
            self._first_path.append(first + 1)
            return
        shares = shares_told(model.codebook, model.trees, rng) if self.recipe.method == FOREST else None
        self.templates.append(Templates(model.codebook, model.trees, shares))
        of_tree = whole_numbers(np.ones(len(model.trees)), rows, rng)
        for paths, in_tree in zip(model.trees, of_tree.tolist(), strict=True):
            numbers = np.arange(first, first + len(paths))
            of_path = whole_numbers(path_weights(paths), in_tree, rng)
            if self.recipe.method == FOREST:
                cells.add(numbers, np.full(len(paths), -1), of_path)
            else:
                of_class = whole_numbers_by_row(class_weights(paths, self.recipe.classes), of_path, rng)
                n_classes = of_class.shape[1]
                cells.add(np.repeat(numbers, n_classes), np.tile(np.arange(n_classes), len(paths)), of_class.ravel())
            first += len(paths)
        self._first_path.append(first)

    # ------------------------------------------------------------ rows

    def blocks(self, at_once: int = BLOCK, n_jobs: int = 1) -> Iterator[Block]:
        """All rows in order, `at_once` at a time, however large that is. On several threads a few blocks are made ahead."""
        if at_once < 1:
            raise PlanError(f"at_once: got {at_once}; expected at least 1.")
        waiting: list[Block] = []
        held = 0
        for block in self._made(n_jobs):
            waiting.append(block)
            held += len(block)
            while held >= at_once:
                whole = joined(waiting)
                yield whole.part(0, at_once)
                waiting = [whole.part(at_once, held)] if held > at_once else []
                held -= at_once
        if held:
            yield joined(waiting)

    def _made(self, n_jobs: int) -> Iterator[Block]:
        numbers = iter(range(-(-self.rows // BLOCK)))
        if n_jobs <= 1:
            yield from map(self.block, numbers)
            return
        with ThreadPoolExecutor(n_jobs) as pool:
            ahead = [pool.submit(self.block, number) for number in islice(numbers, 2 * n_jobs)]
            try:
                while ahead:
                    block = ahead.pop(0).result()
                    ahead += [pool.submit(self.block, number) for number in islice(numbers, 1)]
                    yield block
            finally:  # also where the reader has enough
                for job in ahead:
                    job.cancel()

    def block(self, number: int) -> Block:
        """Rows number·BLOCK and on: a function of the seed and that number."""
        start = number * BLOCK
        rows = min(BLOCK, self.rows - start)
        rng = self._rng(1, number)
        slots = (self._offset + self._stride * start) % self.rows
        cell = np.searchsorted(self._ends, (slots + self._stride * np.arange(rows)) % self.rows, side="right")
        path, label = self._path[cell], self._label[cell]
        if len(self.templates) == 1:
            return self._rows_of(0, path, label, rng)
        whole = self.no_rows(rows)
        owner = np.searchsorted(self._first_path, path, side="right") - 1
        for model in np.unique(owner).tolist():
            here = np.flatnonzero(owner == model)
            made = self._rows_of(model, path[here] - self._first_path[model], label[here], rng)
            whole.codes[here], whole.classes[here] = made.codes, made.classes
            for j, column in made.numbers.items():
                whole.numbers[j][here] = column
        return whole

    def no_rows(self, places: int = 0) -> Block:
        """Places for rows, with nothing in them."""
        codes = np.empty((places, len(self.codebook.sizes)), dtype=self.codebook.dtype)
        numbers = {j: np.empty(places) for j in range(codes.shape[1]) if self.codebook.numeric_cells(j)}
        return Block(codes, numbers, np.empty(places, dtype=np.uint16))

    def _rows_of(self, number: int, path: NDArray[np.int64], label: NDArray[np.int64], rng: np.random.Generator) -> Block:
        same, vote = self._predictors[number]
        codes, numbers = self.templates[number].draw(path, self.recipe.numeric, rng)
        if self.recipe.method != PGEN and vote is not None:
            label = vote.probabilities(codes).argmax(axis=1)
        if not same:  # another owner's cells
            codes = codes.astype(self.codebook.dtype)
            for j, column in numbers.items():
                codes[:, j] = self.codebook.coders[j].encode(column)
        return Block(codes, numbers, label.astype(np.uint16))


def joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    numbers = {j: np.concatenate([block.numbers[j] for block in blocks]) for j in blocks[0].numbers}
    codes = np.concatenate([block.codes for block in blocks])
    return Block(codes, numbers, np.concatenate([block.classes for block in blocks]))


def _coprime(number: int, rows: int) -> int:
    """The least number from `number` on that shares no factor with `rows`: its multiples visit every place once."""
    number = max(number, 1)
    while math.gcd(number, rows) > 1:
        number += 1
    return number
