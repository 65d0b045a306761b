"""docs/LEARNING.md: tables and figures of what `learning.py` has stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.learning import ALL_SETS, DELTA, EPSILONS, NOT_PRIVATE, ROTATION_EPSILONS, ROWS, VARIANTS
from hedgerow_experiments.peers.tables import SETS as TEN

PLAIN = "as it is"
WHO = {"delta": f"Hedgerow, δ = {DELTA}", "pure": "Hedgerow, pure", "boosting": "boosting, not private"}
GROUPS = {"the ten": TEN, "the twelve of `more`": ALL_SETS[len(TEN) :], "all": ALL_SETS}
POWERS = (10_000, 100_000, 1_000_000)
Cells = Mapping[Any, float]  # by set and whatever else


# ------------------------------------------------------------ more rows


def rows_blocks(results: Sequence[Result]) -> list[Block]:
    by: dict[tuple[str, int], list[float]] = defaultdict(list)
    for result in results:
        for who in WHO:
            by[who, result.job["rows"]].append(result.found[who])
    sizes = [n for n in ROWS if ("boosting", n) in by]
    lines = [Series(WHO[who], [Point(n, fmean(by[who, n]), _error(by[who, n])) for n in sizes], who == "boosting") for who in WHO]
    chart = Lines(
        "Accuracy as the rows grow, ε = 1", [Panel("", lines)], "rows", "accuracy", [(n, f"{n:,}") for n in sizes if n in POWERS],
        log_x=True,
    )  # fmt: skip
    mean = {key: fmean(values) for key, values in by.items()}
    away = {who: {n: mean["boosting", n] - mean[who, n] for n in sizes} for who in ("delta", "pure")}
    rows = [
        [f"{n:,}", *(f"{mean[who, n]:.4f}" for who in WHO), *(f"{away[who][n]:.4f}{_factor(away[who], n)}" for who in away)] for n in sizes
    ]
    heads = ["rows", *WHO.values(), "distance to boosting, δ", "distance, pure"]
    return [
        "The distance to boosting without privacy, which sees as many rows. In brackets: over the distance at a tenth of the rows; 0.5 "
        "says that ten times the rows halve it.",
        Table(heads, rows),
        Figure("learning-rows", chart, "Accuracy as the rows grow. ε = 1; means of tables drawn anew, whiskers are one standard error."),
    ]


def _factor(away: Mapping[int, float], n: int) -> str:
    tenth = min(away, key=lambda other: abs(other - n / 10))
    return f" ({away[n] / away[tenth]:.2f})" if abs(10 * tenth / n - 1) < 0.01 and away[tenth] > 0 else ""


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


# ------------------------------------------------------------ more ε


def epsilon_blocks(results: Sequence[Result]) -> list[Block]:
    cells = {(result.job["set"], result.job["epsilon"], result.job["delta"]): fmean(result.found["accuracy"]) for result in results}
    levels = [(epsilon, delta) for delta in (DELTA, "0") for epsilon in EPSILONS]
    heads = ["accuracy", *(f"ε = {epsilon}{', δ' if delta != '0' else ''}" for epsilon, delta in levels), "not private"]
    means = [
        [f"mean of {group}", *(_mean(cells, sets, *level) for level in levels), _mean(cells, sets, NOT_PRIVATE, "0")]
        for group, sets in GROUPS.items()
    ]
    each = [
        [name, *(_cell(cells, name, *level) for level in levels), _cell(cells, name, NOT_PRIVATE, "0")]
        for name in ALL_SETS if any(key[0] == name for key in cells)
    ]  # fmt: skip
    return [f"δ is {DELTA}, or 0. The last column is boosting without privacy on the same folds.", Table(heads, means), Table(heads, each)]


def _mean(cells: Cells, sets: Sequence[str], *level: str) -> str:
    """Empty where a set is missing: a mean over others would not compare."""
    found = [cells[(name, *level)] for name in sets if (name, *level) in cells]
    return f"{fmean(found):.3f}" if len(found) == len(sets) else ""


def _cell(cells: Cells, *key: str) -> str:
    return f"{cells[key]:.3f}" if key in cells else ""


# ------------------------------------------------------------ rotation


def rotation_blocks(results: Sequence[Result]) -> list[Block]:
    cells = {(r.job["set"], r.job["variant"], r.job["epsilon"]): fmean(r.found["accuracy"]) for r in results}
    sets = [name for name in ALL_SETS if all((name, v, e) in cells for v in VARIANTS for e in ROTATION_EPSILONS)]
    if len(sets) < 2:
        return ["Too few results."]
    picked = {name: _best_without(cells, sets, name) for name in sets}
    heads = ["mean accuracy of", *(f"{who}, ε = {e}" for e in ROTATION_EPSILONS for who in ("as it is", "rotated"))]
    rows = []
    for group, members in GROUPS.items():
        if inside := [name for name in members if name in sets]:
            plain, rotated = [(name, PLAIN) for name in inside], [(name, picked[name]) for name in inside]
            means = [fmean(cells[n, v, e] for n, v in pairs) for e in ROTATION_EPSILONS for pairs in (plain, rotated)]
            rows.append([group, *(f"{mean:.4f}" for mean in means)])
    each = [
        [v, *(f"{fmean(cells[n, v, e] for n in sets):.4f}" for e in ROTATION_EPSILONS), str(list(picked.values()).count(v))]
        for v in VARIANTS
    ]
    return [
        "For each set, that of the variants below (one constant changed at a time) with the best mean over all *other* sets and both ε: "
        "its accuracy on the set is the rotated figure. Beside it, the constants as they are, which were chosen while some of these sets "
        f"were looked at. {len(sets)} sets took part.",
        Table(heads, rows),
        Table(["variant", *(f"mean of all sets, ε = {e}" for e in ROTATION_EPSILONS), "picked for so many sets"], each),
    ]


def _best_without(cells: Cells, sets: Sequence[str], left_out: str) -> str:
    others = [name for name in sets if name != left_out]
    return max(VARIANTS, key=lambda variant: fmean(cells[name, variant, e] for name in others for e in ROTATION_EPSILONS))
