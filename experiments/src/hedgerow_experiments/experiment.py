"""What an experiment is: jobs, the work that each of them is, and what a report says about the stored results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hedgerow_experiments.document import Block

Job = dict[str, Any]  # text and whole numbers by name; together they say what to do, and which stored result is whose
Found = dict[str, Any]  # the results of a job: whatever JSON can hold
Verdict = Literal["reproduced", "partly", "not", "open"]


@dataclass(frozen=True)
class Result:
    """One stored row: a job, what it found, and how long that took."""

    job: Job
    found: Found
    seconds: float
    run: str  # names the run, whose versions and data files are stored beside the results


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper beside our figure.

    text:    what the paper says, in our words
    ours:    what we found, with its interval
    verdict: "open" where the stored results do not suffice
    why:     where and why it differs; may be empty where it is reproduced
    own:     the sentence is ours: it does not count among those of the paper
    part:    what a sentence about the whole paper, which counts, means for one figure
    given:   our figure follows from a formula and is not measured: it does not count
    """

    text: str
    ours: str
    verdict: Verdict
    why: str = ""
    own: bool = False
    part: bool = False
    given: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of a paper, by name.

    title:    as in "Figure 2: DPDF, DiffPID3 and a random forest on Car"
    source:   the paper, or "peers"
    protocol: folds, repetitions, ε, preparation of the data: as the paper has them, and where we differ
    sets:     the public data sets that it reads
    jobs:     all jobs of the full protocol, or those of the quick one, which are some of them; the first repetition first
    work:     does one job; a function of a module, so that other processes find it
    blocks:   text, tables and figures from the results that are there
    claims:   the paper's claims about it
    setup:    None if it can run here; otherwise why not, and what to do
    """

    name: str
    title: str
    source: str
    protocol: str
    sets: tuple[str, ...]
    jobs: Callable[[bool], list[Job]]
    work: Callable[[Job], Found]
    blocks: Callable[[Sequence[Result]], list[Block]]
    claims: Callable[[Sequence[Result]], list[Claim]] = lambda results: []
    setup: Callable[[Job], str | None] = lambda job: None
