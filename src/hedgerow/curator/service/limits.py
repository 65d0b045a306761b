"""How much one service takes on: everything that somebody outside could make large has a bound here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a service refuses to exceed.

    body_bytes, body_seconds:  of one request, and how long it may take to arrive; plan_bytes: of one with a plan
    requests:                  that are answered at once
    workers, waiting:          jobs that run and jobs that wait; waiting_each: of one person
    job_seconds, stop_seconds: how long a job may run; how long a stop waits for it
    threads:                   of one job
    leaves, trees, bins, depth: of a forest that is asked for
    dummies, dummy_rows:       trials on dummy rows at once, and their rows
    plans:                     shared plans that are checked at once
    predict_rows:              rows of one prediction; kept_releases, kept_bytes: releases that stay in memory for it
    page:                      entries of the ledger in one answer
    """

    body_bytes: int = 1 << 20
    plan_bytes: int = 16 << 20
    body_seconds: float = 10
    requests: int = 64
    workers: int = 1
    waiting: int = 32
    waiting_each: int = 8
    job_seconds: float = 3600
    stop_seconds: float = 20
    threads: int = 1
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
