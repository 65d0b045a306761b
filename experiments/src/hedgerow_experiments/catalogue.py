"""All experiments by name, in the order of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hedgerow.errors import ExperimentError
from hedgerow_experiments import auc, audits, dpdf, dpdf_claims, dprf, jagannathan, learning, sharkey, sharkey_more, unseen
from hedgerow_experiments.experiment import Claim, Experiment, Result
from hedgerow_experiments.peers import experiment as peers

PAPERS: tuple[Experiment, ...] = (
    *jagannathan.EXPERIMENTS,
    *dpdf.EXPERIMENTS,
    *dprf.EXPERIMENTS,
    *sharkey.EXPERIMENTS,
    *sharkey_more.EXPERIMENTS,
)
PEERS: tuple[Experiment, ...] = (*peers.EXPERIMENTS, *auc.EXPERIMENTS)
AUDITS: tuple[Experiment, ...] = audits.EXPERIMENTS
LEARNING: tuple[Experiment, ...] = learning.EXPERIMENTS
UNSEEN: tuple[Experiment, ...] = unseen.EXPERIMENTS
OVERALL: dict[str, Callable[[Mapping[str, Sequence[Result]]], list[Claim]]] = {  # claims about several experiments of a paper together
    dpdf.SOURCE: dpdf_claims.overall_claims,
}
EXPERIMENTS = {experiment.name: experiment for experiment in (*PAPERS, *PEERS, *AUDITS, *LEARNING, *UNSEEN)}


def chosen(names: Sequence[str]) -> list[Experiment]:
    """By full name, or all whose name begins with it and a dash: "dpdf" is dpdf-table-1, dpdf-figure-2, …"""
    found: dict[str, Experiment] = {}
    for name in names:
        matching = {known: each for known, each in EXPERIMENTS.items() if known == name or known.startswith(f"{name}-")}
        if not matching:
            raise ExperimentError(f"experiment: got {name!r}; expected one of {', '.join(EXPERIMENTS)}, or the beginning of several.")
        found |= matching
    return list(found.values())
