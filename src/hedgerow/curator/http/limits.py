"""Limits of the service: everything that a client could make large has a bound here. The names are those of limits.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from hedgerow.errors import LedgerError


@dataclass(frozen=True)
class Limits:
    """What a service refuses to exceed.

    body_bytes, body_seconds:  of one request, and how long it may take to arrive; head_seconds: the same before its body;
                               plan_bytes: of one with a plan
    answer_seconds:            for what is computed while somebody waits: a quote, a trial on dummy rows
    requests, connections:     that are answered at once, and that are open; requests_each: that one person has under way
    silent_each:               connections of one address on which no request has come; the oldest give way
    strangers:                 people without a token who sign in at once: nobody else without a token may send anything
    workers, waiting:          jobs that run and jobs that wait; waiting_each: of one person
    job_seconds, stop_seconds: how long a job may run; how long a stop waits for it
    party_seconds:             how long a job that counts together with other services waits for them to come, and in each round
    threads:                   of one job
    reservations_each_hour:    of one person, whatever became of them
    pad_seconds:               every job and every query ends at a multiple of them after it began; 0: when it ends
    leaves, trees, bins, depth: that a request asks for; a Hedgerow forest chooses the number of its trees itself
    dummies, dummy_rows:       trials on dummy rows at once, and their rows
    plans:                     shared plans that are checked at once
    predict_rows:              rows of one prediction; kept_releases, kept_bytes: releases that stay in memory for it
    page:                      entries of the ledger in one answer
    sessions, sessions_each:   query sessions at once, each with a process, and of one person
    session_share:             of what is left of a dataset that others may use too: what one person's sessions may hold at once
    session_idle_seconds, session_seconds: after which a session is ended: unused, or at all
    look_wait_seconds:         how long a request waits for its query before the answer is 202: ask again
    verb_bytes, verb_seconds:  of a request in a session, and how long it may take to arrive
    verb_bodies:               of such requests that are larger than `body_bytes`, at once
    answer_numbers, counted_numbers: of one query: in its answer, and counted for it
    looks:                     queries of one session
    """

    body_bytes: int = 1 << 20
    plan_bytes: int = 16 << 20
    body_seconds: float = 10
    head_seconds: float = 10
    answer_seconds: float = 30
    requests: int = 64
    requests_each: int = 16
    strangers: int = 16
    connections: int = 500
    silent_each: int = 100
    workers: int = 1
    waiting: int = 32
    waiting_each: int = 8
    reservations_each_hour: int = 1000
    job_seconds: float = 3600
    stop_seconds: float = 300
    party_seconds: float = 300
    threads: int = 1
    pad_seconds: float = 0
    leaves: int = 200_000
    trees: int = 1000
    bins: int = 1000
    depth: int = 30
    dummies: int = 1
    dummy_rows: int = 1000
    plans: int = 1
    predict_rows: int = 10_000
    kept_releases: int = 16
    kept_bytes: int = 64 << 20
    page: int = 1000
    session_share: float = 0.75
    sessions: int = 4
    sessions_each: int = 2
    session_idle_seconds: float = 300
    session_seconds: float = 3600
    look_wait_seconds: float = 20
    verb_bytes: int = 1 << 25
    verb_seconds: float = 60
    verb_bodies: int = 8
    answer_numbers: int = 1 << 22
    counted_numbers: int = 1 << 25
    looks: int = 100_000

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Limits:
        """From a TOML file with some of these names; the others keep what they are."""
        try:
            given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LedgerError(f"limits {os.fspath(path)!r} cannot be read ({error}); expected a TOML file such as: waiting = 100") from None
        known = {field.name: field.default for field in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise LedgerError(f"limits: got {name!r:.100}; expected {', '.join(known)}.")
            kinds = (int, float) if isinstance(known[name], float) or name.endswith("_seconds") else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 2**40:
                raise LedgerError(f"limits: {name}: got {value!r:.100}; expected a {'' if float in kinds else 'whole '}number above 0.")
        return cls(**given)
