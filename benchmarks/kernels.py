"""The compiled loops on codes in memory: nanoseconds for each step, on one and two threads, and what bounds them.

Two loops of reference have the parts of the work. One reads the same codes and does nothing else: memory traffic. The other
takes as many look-ups that wait for each other, in tables of the same size, one row after the other and eight side by side. If
memory bounded the counting, it would take as long as the first; if waiting for look-ups did, as long as the second with one row.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numba import uint64 as at
from numpy.typing import NDArray

from benchmarks.big_table import ATTRIBUTES, HEIGHT, SCHEMA, TREES, VALUES
from benchmarks.measure import Line, at_least, at_most, fastest
from hedgerow.growers import rdt
from hedgerow.parallel import ROWS_AT_ONCE, row_blocks
from hedgerow.queries import kernels
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.routing import route
from hedgerow.trees.tree import Tree, TreeBuilder

ROWS, QUICK_ROWS = 4_000_000, 400_000
ROUNDS = 5
CLASSES = 2
THREADS = 2
CODEBOOK = Codebook(SCHEMA, VALUES)


@numba.njit(nogil=True)
def _read(codes: Any) -> Any:
    """Every byte of the codes once, eight at a time."""
    total = at(0)
    for i in range(at(codes.size)):
        total += codes[i]
    return total


@numba.njit(nogil=True)
def _look_up(table: Any, starts: Any, steps: int) -> Any:
    """As many look-ups for each start, each at the place that the one before tells; one start after the other."""
    total = at(0)
    place = at(0)
    for i in range(at(starts.size)):
        place = at(starts[i]) ^ (place & at(1))  # waits for the row before
        for _ in range(steps):
            place = at(table[place])
        total += place
    return total


@numba.njit(nogil=True)
def _look_up_abreast(table: Any, starts: Any, steps: int) -> Any:
    """The same for eight starts side by side."""
    total = at(0)
    for i in range(at(0), at(starts.size) - at(7), at(8)):
        a, b, c, d = at(starts[i]), at(starts[i + at(1)]), at(starts[i + at(2)]), at(starts[i + at(3)])
        e, f, g, h = at(starts[i + at(4)]), at(starts[i + at(5)]), at(starts[i + at(6)]), at(starts[i + at(7)])
        for _ in range(steps):
            a, b, c, d = at(table[a]), at(table[b]), at(table[c]), at(table[d])
            e, f, g, h = at(table[e]), at(table[f]), at(table[g]), at(table[h])
        total += a + b + c + d + e + f + g + h
    return total


def in_memory(rows: int) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, VALUES, (rows, ATTRIBUTES), dtype=np.uint8)
    return codes, rng.integers(0, CLASSES, rows, dtype=np.uint16)


def random_trees() -> list[Tree]:
    return list(rdt.structures(CODEBOOK, None, rdt.Settings(TREES, HEIGHT, "bins", 2_000_000), np.random.default_rng(1)))


def greedy_tree(levels: int) -> tuple[Tree, NDArray[np.int64]]:
    """A tree that has grown so many levels, and the nodes whose splits are counted next."""
    rng, builder = np.random.default_rng(levels), TreeBuilder(CODEBOOK.sizes)
    nodes = [0]
    for _ in range(levels):
        nodes = [child for node in nodes for child in builder.split(node, int(rng.integers(ATTRIBUTES)))]
    return builder.build(), np.asarray(nodes, dtype=np.int64)


def zeros(trees: list[Tree]) -> list[NDArray[np.int64]]:
    return [np.zeros((len(tree.leaves), CLASSES), dtype=np.int64) for tree in trees]


def leaf_jobs(codes: NDArray[np.uint8], classes: NDArray[np.uint16], pool: ThreadPoolExecutor) -> dict[str, Callable[[], object]]:
    """Rows only sent to their leaves; counted by one thread; by two that share out the trees, as rows in memory do; or the rows, as a
    streamed table does.
    """
    trees = random_trees()

    def some_trees(thread: int, threads: int) -> None:
        mine = trees[thread::threads]
        kernels.add_leaf_counts(mine, codes, classes, zeros(mine))

    def some_rows(thread: int) -> None:
        results, places = zeros(trees), list(map(kernels.leaf_places, trees))
        for block in row_blocks(len(codes), ROWS_AT_ONCE)[thread::THREADS]:
            kernels.add_leaf_counts(trees, codes[block], classes[block], results, places)

    def descend() -> None:
        for block in row_blocks(len(codes), kernels.BLOCK):
            for tree in trees:
                route(tree, codes[block])

    return {
        "descent": descend,
        "one": lambda: some_trees(0, 1),
        "trees": lambda: list(pool.map(lambda thread: some_trees(thread, THREADS), range(THREADS))),
        "rows": lambda: list(pool.map(some_rows, range(THREADS))),
    }


def reference_jobs(codes: NDArray[np.uint8]) -> dict[str, Callable[[], object]]:
    """Memory traffic and look-ups: as many as the trees need, two for each step (a code, the next state)."""
    rng = np.random.default_rng(2)
    entries = random_trees()[0].onward.size
    table = rng.permutation(entries).astype(np.uint32)
    starts = rng.integers(0, entries - 1, len(codes), dtype=np.uint32)
    words = codes.reshape(-1).view(np.uint64)
    steps = 2 * TREES * HEIGHT
    return {
        "read": lambda: _read(words),
        "look-ups": lambda: _look_up(table, starts[: len(starts) // 10], steps),  # a tenth: it is slow
        "look-ups abreast": lambda: _look_up_abreast(table, starts, steps),
    }


def split_job(codes: NDArray[np.uint8], classes: NDArray[np.uint16], levels: int) -> Callable[[], object]:
    tree, nodes = greedy_tree(levels)
    slot = kernels.slots(tree, nodes)
    counts = np.zeros((len(nodes), kernels.split_cells(tree)[1], CLASSES + 1), dtype=np.int64)

    def job() -> None:
        for block in row_blocks(len(codes)):
            kernels.add_split_counts(tree, slot, codes[block], classes[block], counts)

    return job


def run(quick: bool = False) -> list[Line]:
    rows = QUICK_ROWS if quick else ROWS
    codes, classes = in_memory(rows)
    lines = []
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = leaf_jobs(codes, classes, pool) | reference_jobs(codes)
        for levels in range(HEIGHT):
            jobs[f"splits {levels}"] = split_job(codes, classes, levels)
        for job in jobs.values():  # compiled, and every page touched
            job()
        taken = fastest(jobs, 2 if quick else ROUNDS)
    steps = rows * TREES * HEIGHT
    step = {name: best / steps * 1e9 for name, best in taken.best.items()}
    step["look-ups"] *= 10
    what = f"leaf counts, {rows:,} rows, {TREES} trees of height {HEIGHT}"
    lines.append(at_most(f"{what}, one thread: ns for each (row, tree, level)", ns(step["one"]), "", step["one"], 1.5))
    for name, shared in (("trees", "each has half of the trees"), ("rows", "each has half of the rows")):
        times = f"one thread {ns(step['one'])}"
        lines.append(at_least(f"{what}, two threads, {shared}: times as fast", ns(step[name]), times, step["one"] / step[name], 1.7))
    for name, described in (
        ("descent", "rows only sent to their leaves, not counted"),
        ("read", "the same codes only read: memory traffic"),
        ("look-ups", "two look-ups for each step, each waiting for the one before, one row at a time"),
        ("look-ups abreast", "the same, eight rows side by side"),
    ):
        lines.append(Line(described, ns(step["one"]), ns(step[name]), step[name] / step["one"], "", None))
    for levels in range(HEIGHT):
        each = taken.best[f"splits {levels}"] / (rows * ATTRIBUTES) * 1e9
        nodes = f"{VALUES**levels:,} node{'s' if levels else ''}"
        pass_over = taken.best[f"splits {levels}"] / taken.best["one"]
        lines.append(
            at_most(
                f"split counts of {nodes}, {ATTRIBUTES} attributes, one tree: ns for each (row, attribute); time over the leaf counts of "
                f"{TREES} trees",
                ns(each),
                f"leaf counts {taken.best['one'] / rows * 1e9:.1f} ns for each row",
                pass_over,
                5,
            )
        )
    return [line.timed(taken.others) for line in lines]


def ns(time_taken: float) -> str:
    return f"{time_taken:.2f} ns"


if __name__ == "__main__":
    from benchmarks.measure import table

    print(table(run()))
