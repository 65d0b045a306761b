"""How far `hedgerow advise` is to be trusted: what it expects beside what forests then get, on public sets.

    HEDGEROW_DATA=folder python -m benchmarks --only advice        # or python -m benchmarks.advice, which prints the coefficients, too

Two thirds of a set, or fewer rows (SIZES), are trained on, a third is tested on; split, noise and structure are new each time. The
forests at ε = 0.2 are the earlier releases; the mean accuracy at each ε is the truth. The coefficients of `planner/curve.py` are those of
all sets; a set is judged by coefficients that were found on the 22 others. Of ten sets, what is expected from a table that is alike (the
third) and from the schema alone is measured, too. Measured records are in advice.json, and not measured again: remove it to do so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hedgerow
from benchmarks.measure import Line, not_run
from hedgerow import Release, datasets
from hedgerow.planner.curve import logit, rising, share
from hedgerow.planner.made_rows import MadeRows, dummy_rows, like_rows, own_shares
from hedgerow.planner.trials import accuracy_of
from hedgerow_experiments.folds import quiet_fit
from hedgerow_experiments.more_sets import MORE, loaded

FILE = Path(__file__).with_name("advice.json")
TEN = ("adult", "bank-marketing", "car", "cmc", "connect-4", "german-credit", "mushroom", "nursery", "tic-tac-toe", "votes")
SETS = (*TEN, "chess-krk", *(f"more/{name}" for name in MORE))
SIZES = {"1e-6": (0, 600, 2_000, 6_000, 20_000), "0": (0, 2_000)}  # rows to train on, 0: two thirds of the set
EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "4")
EARLIER, JUDGED = "0.2", EPSILONS[1:]
SMALL, MANY, FEW, PARTS = 3_000, 16, 3, 4  # fits: of sets with fewer rows than SMALL, of larger ones, of parts and of those without a δ
FORESTS = 6  # earlier releases, at most
RIDGE, CORNER = 0.05, 0.02  # of the fit: |error| is rounded off below CORNER
Record = dict[str, Any]


def columns_of(name: str) -> tuple[dict[str, NDArray[Any]], NDArray[Any], hedgerow.Schema]:
    if name == "german-credit":
        data = datasets.load(name)
        return dict(data.columns), data.y, data.schema
    columns, labels, schema = loaded(name)
    return {key: np.asarray(column) for key, column in columns.items()}, np.asarray(labels), schema


def split(columns: dict[str, NDArray[Any]], labels: NDArray[Any], turn: int, rows: int) -> MadeRows:
    order = np.random.default_rng([turn, 7]).permutation(len(labels))
    test, train = np.split(order, [len(labels) // 3])
    train = train[: rows or None]
    return MadeRows({k: v[train] for k, v in columns.items()}, labels[train], {k: v[test] for k, v in columns.items()}, labels[test])


def scored(release: Release, rows: MadeRows) -> float:
    return round(float(np.mean(release.predict(rows.test).astype(str) == rows.test_labels.astype(str))), 4)


def own_score(release: Release) -> Record:
    shares = own_shares(release)
    return {"own": round(float(shares.max(axis=1).mean()), 4), "majority": round(float(shares.mean(axis=0).max()), 4)}


def measured(name: str, rows: int, delta: str) -> Record | None:
    """None where the set has not enough rows for it to be a part."""
    columns, labels, schema = columns_of(name)
    whole = len(labels) - len(labels) // 3
    if rows * 1.5 > whole:
        return None
    turns = PARTS if rows else FEW if len(labels) >= SMALL else MANY if delta != "0" else PARTS
    found: Record = {"set": name, "part": rows, "rows": rows or whole, "classes": len(schema.target.classes), "delta": delta}
    found |= {"accuracy": {epsilon: [] for epsilon in EPSILONS}, "forests": []}
    for turn in range(turns):
        here = split(columns, labels, turn, rows)
        for epsilon in EPSILONS:
            model = hedgerow.HedgerowClassifier(schema, epsilon, delta, random_state=turn)
            release = quiet_fit(model, here.train, here.train_labels).release_
            found["accuracy"][epsilon].append(scored(release, here))
            if epsilon == EARLIER and turn < FORESTS:
                found["forests"].append(own_score(release) | {"accuracy": found["accuracy"][epsilon][-1]})
    return found


def made(name: str, delta: str = "1e-6") -> Record:
    """What is expected from a table that is alike and from the schema alone: one fit each."""
    columns, labels, schema = columns_of(name)
    here = split(columns, labels, 0, 0)
    makers = {
        "like": like_rows(schema, len(here.train_labels), here.test, here.test_labels),
        "dummy": dummy_rows(schema, len(here.train_labels)),
    }
    found = {kind: maker(1) for kind, maker in makers.items()}
    return {kind: {e: round(accuracy_of("hedgerow", schema, e, delta, each, 0), 4) for e in JUDGED} for kind, each in found.items()}


def records(sets: tuple[str, ...] = SETS) -> list[Record]:
    """All of them, those that are missing measured now."""
    found: list[Record] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
    there = {(each["set"], each["part"], each["delta"]) for each in found}
    for delta, sizes in SIZES.items():
        for name in sets:
            for rows in sizes:
                if (name, rows, delta) not in there and (record := measured(name, rows, delta)) is not None:
                    found.append(record)
                    write(found)
    for record in found:
        if record["set"] in TEN and record["set"] in sets and (record["part"], record["delta"]) == (0, "1e-6") and "made" not in record:
            record["made"] = made(record["set"])
            write(found)
    return found


def write(found: list[Record]) -> None:
    FILE.write_text("[\n" + ",\n".join(json.dumps(each) for each in found) + "\n]\n", encoding="utf-8")


# ------------------------------------------------------------ the curve


def table_of(found: list[Record], known: bool) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """For each earlier forest what is known (1, logit s, logit M, log nε/C), the true accuracies, a weight: each record counts as one."""
    facts, truth, weights = [], [], []
    for each in found:
        signal = np.log(max(each["rows"] * float(EARLIER) / each["classes"], 1.0))
        for forest in each["forests"]:
            facts.append([1.0, logit(forest["accuracy" if known else "own"]), logit(forest["majority"]), signal])
            truth.append([np.mean(each["accuracy"][epsilon]) for epsilon in EPSILONS])
            weights.append(1 / len(each["forests"]))
    return np.array(facts), np.array(truth), np.array(weights)


def coefficients(found: list[Record], known: bool) -> NDArray[np.float64]:
    """(ε, 4): the least mean absolute error, with a small penalty on what differs from "as it was"."""
    from scipy.optimize import minimize

    facts, truth, weights = table_of(found, known)
    mean = np.average(facts, axis=0, weights=weights)
    spread = np.sqrt(np.average((facts - mean) ** 2, axis=0, weights=weights))
    mean[0], spread[0] = 0.0, 1.0
    scaled, start = (facts - mean) / spread, facts[:, 1]
    found_at = []
    for place in range(len(EPSILONS)):

        def loss(b: NDArray[np.float64], place: int = place) -> tuple[float, NDArray[np.float64]]:
            p = np.asarray(share(start + scaled @ b))
            off = p - truth[:, place]
            rounded = np.hypot(off, CORNER)
            penalty = RIDGE * np.append(0.0, b[1:])
            return float(weights @ rounded + penalty @ b), scaled.T @ (weights * off / rounded * p * (1 - p)) + 2 * penalty

        b = minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B").x / spread
        b[0] -= b[1:] @ mean[1:]
        b[1] += 1.0
        found_at.append(b)
    return np.array(found_at)


def errors(found: list[Record], delta: str, known: bool) -> dict[str, NDArray[np.float64]]:
    """For each set, as it is: expected minus true, (earlier forests, JUDGED), by coefficients of the others."""
    mine, off = [each for each in found if each["delta"] == delta], {}
    for record in (each for each in mine if not each["part"]):
        others = coefficients([each for each in mine if each["set"] != record["set"]], known)
        facts, truth, _ = table_of([record], known)
        expected = np.array([share(rising(others @ each, each[1] if known else None)) for each in facts])
        off[record["set"]] = (expected - truth)[:, 1:]
    return off


def made_errors(found: list[Record], kind: str) -> dict[str, NDArray[np.float64]]:
    there = [each for each in found if "made" in each]
    return {each["set"]: np.array([[each["made"][kind][e] - np.mean(each["accuracy"][e]) for e in JUDGED]]) for each in there}


def every_source(found: list[Record]) -> dict[str, dict[str, NDArray[np.float64]]]:
    return {
        "an earlier forest": errors(found, "1e-6", False),
        "an earlier forest and its accuracy": errors(found, "1e-6", True),
        "an earlier forest, pure ε": errors(found, "0", False),
        "an earlier forest and its accuracy, pure ε": errors(found, "0", True),
        "a table that is alike": made_errors(found, "like"),
        "the schema alone": made_errors(found, "dummy"),
    }


def covered(off: dict[str, NDArray[np.float64]]) -> float:
    """The share of cells inside of an interval whose width is told by all sets together."""
    far = 1.28 * 1.25 * float(np.mean([np.abs(each).mean() for each in off.values()]))
    return float(np.mean([(np.abs(each) <= far).mean() for each in off.values()]))


def run(quick: bool) -> list[Line]:
    """quick: from what is stored, and nothing where that is not there."""
    if quick and not FILE.exists():
        return [not_run("advice", "nothing is stored in advice.json")]
    lines = []
    for source, off in every_source(json.loads(FILE.read_text(encoding="utf-8")) if quick else records()).items():
        for which, names in (("the ten sets", TEN), ("13 others", tuple(name for name in SETS if name not in TEN))):
            mean = {name: float(np.abs(off[name]).mean()) * 100 for name in names if name in off}
            if mean:
                near = f"within 3 points: {sum(each <= 3 for each in mean.values())} of {len(mean)}"
                what = f"{source}, {which}: mean error over ε = {', '.join(JUDGED)}"
                lines.append(Line(what, f"{np.mean(list(mean.values())):.1f} points", near, None, "", None))
    return lines


def main() -> None:
    found = records()
    for delta in SIZES:
        for known in (False, True):
            print(f"({delta != '0'}, {known}):", np.round(coefficients([e for e in found if e["delta"] == delta], known), 3).tolist())
    sources = every_source(found)
    for source, off in sources.items():
        print(f"{source}: all {np.mean([np.abs(each).mean() for each in off.values()]):.4f}, inside of intervals {covered(off):.2f}")
    for name in SETS:
        print(f"| {name} |", " | ".join(f"{np.abs(off[name]).mean() * 100:.1f}" if name in off else "" for off in sources.values()), "|")
    for line in run(True):
        print(line.what, line.ours, line.peer)


if __name__ == "__main__":
    main()
