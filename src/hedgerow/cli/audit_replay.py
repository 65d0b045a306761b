"""`hedgerow audit --replay`: the same training on two tables with the same answers, compared query by query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.console import progress_bar, say, table
from hedgerow.errors import PlanError
from hedgerow.training.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from hedgerow.audit.replaying import Replay
    from hedgerow.audit.requests import Request
    from hedgerow.schema.schema import Schema

NEIGHBOURS = 24
OF_CHANCE = ("as drawn", "wild")  # the answers that random neighbours are replayed with


class Audited(StrEnum):
    """Those of the table of algorithms, and all of them."""

    _ignore_ = ["each"]  # noqa: RUF012 (a word of `enum`)
    for each in ALGORITHMS.values():
        vars()[each.module] = each.name
    all = "all"


FIRST_AUDITED = Audited("hedgerow")


class EngineName(StrEnum):
    memory = "memory"
    csv = "csv"
    parquet = "parquet"
    duckdb = "duckdb"


def check_replay(replay: bool, algorithm: Audited, engine: EngineName | None, settings: dict[str, Any], others: dict[str, object]) -> None:
    """Which options go with --replay, and which do not."""
    if not replay and algorithm is Audited.all:
        raise PlanError("--algorithm: all is for --replay; expected one algorithm, or --replay.")
    if not replay and engine is not None:
        raise PlanError("--engine: only --replay puts its tables into files and databases. Leave it out, or add --replay.")
    if replay and algorithm is Audited.all and settings:
        raise PlanError("--trees, --depth, --delta: they are settings of one algorithm. Leave them out, or name one with --algorithm.")
    for option, given in others.items():
        if replay and given is not None:
            raise PlanError(f"{option}: --replay compares runs one by one, and has no use for it. Leave one of the two out.")


def replay_requests(
    algorithm: Audited,
    epsilon: str,
    settings: dict[str, Any],
    pairs: list[str] | None,
    schema: Schema | None,
    runs: int,
    engine: EngineName,
    save: Path | None,
) -> bool:
    """Whether anything is violated. algorithm: one of them, or all, and then the requests beside `fit`, too."""
    from hedgerow.audit import replay_report

    found: list[Replay] = []
    with progress_bar("replaying") as progress:
        plans = list(_plans(algorithm, epsilon, settings, schema))
        for i, (what, request, times, declared) in enumerate(plans):
            found.append(_replayed(what, request, times, declared, pairs, runs, engine))
            progress((i + 1) / len(plans))
    replays = replay_report.Replays.of(found)
    lines = replay_report.rows_of(found, short=algorithm is Audited.all)
    table(f"replayed at ε = {epsilon}, rows in {engine}", replay_report.HEADS, lines, replay_report.NUMBERS)
    for words in replay_report.sentences(replays):
        say(words, style="bold red" if replays.violated else "bold green" if words.startswith("the same") else None)
    if save is not None:
        replay_report.save(replays, save)
        say(f"wrote {save}: the evidence")
    return replays.violated


def _plans(algorithm: Audited, epsilon: str, settings: dict[str, Any], schema: Schema | None) -> Iterator[tuple[str, Request, int, Schema]]:
    """What is replayed: (name, request, how many times ε it costs, schema). Without a schema, for rows and for persons of 1 and 3 rows."""
    from hedgerow.audit import algorithms
    from hedgerow.audit.neighbours import SMALL
    from hedgerow.audit.requests import OTHERS, WIDE, Request, fit

    wanted = {name: (fit(name), 1, settings) for name in (algorithms.ALGORITHMS if algorithm is Audited.all else [algorithm.value])}
    if algorithm is Audited.all:
        wanted |= {name: (ask, times, settings) for name, (ask, times) in OTHERS.items()}
        wanted["hedgerow, δ = 1e-6"] = (fit("hedgerow"), 1, {**settings, "delta": "1e-6"})
    for name, (ask, times, own) in wanted.items():
        base = schema or (WIDE if own.get("delta") else SMALL)
        units = [base] if schema else [base, *(replace(base, person="person", rows_per_person=k) for k in (1, 3))]
        for declared in units:
            unit = "a row" if declared.person is None else f"a person, k = {declared.k}"
            yield f"{name}: {unit}", Request(ask, epsilon, own), times, declared


def _replayed(what: str, request: Request, times: int, schema: Schema, names: list[str] | None, runs: int, engine: str) -> Replay:
    from hedgerow.accounting.loss import exact_epsilon
    from hedgerow.audit.neighbours import pairs_for
    from hedgerow.audit.random_neighbours import random_pairs
    from hedgerow.audit.replaying import Replay, replay
    from hedgerow.audit.requests import place_named

    most = times * exact_epsilon(request.epsilon)
    with place_named(engine) as place:
        placed = replace(request, place=place)
        found = replay(placed, pairs_for(schema, names or None), epsilon=most, what=what)
        random_findings = replay(placed, random_pairs(schema, runs), epsilon=most, what=what, answers=OF_CHANCE).findings if runs else ()
    return Replay(what, (*found.findings, *random_findings))
