"""The audit of this package as an experiment: every query, every private estimator, results stored like all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hedgerow.audit.algorithms import ALGORITHMS, Trainer
from hedgerow.audit.attack import Finding, audit
from hedgerow.audit.bounds import FALSE_ALARM
from hedgerow.audit.likelihood import KnownRatio
from hedgerow.audit.neighbours import MAKERS, pairs_for
from hedgerow.audit.outputs import features_of
from hedgerow.audit.owners import CASES, attack_owner
from hedgerow.audit.queries import attack_query, attacks
from hedgerow_experiments.document import Block, Table
from hedgerow_experiments.experiment import Experiment, Found, Job, Result

ATTACKS = attacks()
OWNERS = {str(who): who for who in CASES}  # who count together
EPSILONS = ("0.1", "1", "5")
VERB_RUNS, MORE_VERB_RUNS = 200_000, 1_000_000
COSTLY = ("choose_tree", "boost_round", "best_model", "score_bins")  # one look at a time, and each takes longer than those of others
COSTLY_RUNS = 50_000
NOT_IN_CI = "choose, Gini index"  # slow, and another score of a choice that is attacked with two
FAST = [attack.name for attack in ATTACKS.values() if attack.copies and attack.name != NOT_IN_CI]  # of these a million are seconds
FIT_RUNS, OTHER_FIT_RUNS = 20_000, 5_000  # on that pair of tables, and on the others
CI_PAIR = "outlier"  # the pair that CI attacks, with most fits
DELTA = "1e-6"
VERDICTS = 1_000  # more than there will ever be: they share the false-alarm rate
LEVEL = FALSE_ALARM / (2 * VERDICTS)  # of each of the two bounds of a verdict


def jobs(quick: bool) -> list[Job]:
    """Quick: 200,000 runs or a million of each query on each table, 20,000 fits of each estimator. CI does some of it (test_audits.py)."""
    costly = [name for name in ATTACKS if name.startswith(COSTLY)]
    slow = [name for name in ATTACKS if name not in FAST and name != NOT_IN_CI and name not in costly]
    ci: list[Job] = [{"verb": name, "epsilon": epsilon, "runs": MORE_VERB_RUNS} for name in FAST for epsilon in EPSILONS]
    ci += [{"verb": name, "epsilon": epsilon, "runs": VERB_RUNS} for name in slow for epsilon in EPSILONS]
    ci += [{"verb": name, "epsilon": epsilon, "runs": COSTLY_RUNS} for name in costly for epsilon in EPSILONS]
    ci += [{"together": name, "epsilon": epsilon, "runs": COSTLY_RUNS} for name in OWNERS for epsilon in EPSILONS]
    ci += [{"fit": name, "epsilon": "1", "pair": CI_PAIR, "runs": FIT_RUNS} for name in ALGORITHMS]
    if quick:
        return ci
    others = [pair for pair in MAKERS if pair != CI_PAIR]
    more: list[Job] = [{"fit": name, "epsilon": "1", "pair": pair, "runs": OTHER_FIT_RUNS} for pair in others for name in ALGORITHMS]
    more += [{"verb": NOT_IN_CI, "epsilon": epsilon, "runs": VERB_RUNS} for epsilon in EPSILONS]
    gaussian = [attack.name for attack in ATTACKS.values() if attack.gaussian]
    more += [{"verb": name, "epsilon": "1", "delta": DELTA, "runs": MORE_VERB_RUNS} for name in gaussian]
    more += [{"fit": "hedgerow", "epsilon": "1", "delta": DELTA, "pair": pair, "runs": FIT_RUNS} for pair in (CI_PAIR, "purity")]
    more += [{"verb": name, "epsilon": "1", "runs": MORE_VERB_RUNS} for name in slow]
    return [*ci, *more]


def work(job: Job) -> Found:
    if "verb" in job:
        finding = attack_query(ATTACKS[job["verb"]], job["epsilon"], job["runs"], LEVEL, job.get("delta", "0"))
    elif "together" in job:
        finding = attack_owner(OWNERS[job["together"]], job["epsilon"], job["runs"], LEVEL)
    else:
        estimator, settings = ALGORITHMS[job["fit"]]
        delta = float(job.get("delta", 0))
        train = Trainer(estimator, job["epsilon"], settings | ({"delta": job["delta"]} if delta else {}))
        pairs = pairs_for(names=[job["pair"]])
        features = KnownRatio(pairs[0]) if job["fit"] == "rdt" else features_of  # of random trees the law of the output is known
        how: dict[str, Any] = {"runs": job["runs"], "workers": 1, "tests": VERDICTS, "features": features}
        told = audit(train, pairs, epsilon=float(job["epsilon"]), delta=delta, **how)
        finding = told.findings[0]
    return {name: value for name, value in asdict(finding).items() if name != "picture"}


def finding_in(result: Result) -> Finding:
    found: dict[str, Any] = dict(result.found)
    return Finding(**(found | {"hits": tuple(found["hits"]), "runs": tuple(found["runs"])}))


def blocks(results: Sequence[Result]) -> list[Block]:
    verbs = [result for result in results if "verb" in result.job]
    fits = [result for result in results if "fit" in result.job]
    owners = [result for result in results if "together" in result.job]
    return [*_summary(results), *_verb_table(verbs), *_owners_table(owners), *_fit_table(fits)]


FORMER = (
    "The two fits of the Hedgerow forest with a δ are of the version before its boosted trees; `make audit-ci` attacks the present one, "
    "with fewer fits, and the replay compares it exactly."
)


def _summary(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    violated = [result for result in results if finding_in(result).violated]
    runs = sum(sum(finding_in(result).runs) * 2 for result in results)
    said = "No verdict of violation" if not violated else f"{len(violated)} VIOLATED"
    said = f"{said} in {len(results)} attacks, {runs:,} runs. All verdicts together are wrong with a chance of at most one in a million."
    return [said, FORMER]


def _share(result: Result, confidence: str) -> str:
    return f"{finding_in(result).bounds[confidence] / float(result.job['epsilon']):.0%}"


def _verb_table(results: Sequence[Result]) -> list[Block]:
    """Of several sizes the largest."""
    largest: dict[tuple[str, str, str], Result] = {}
    for result in sorted(results, key=lambda each: int(each.job["runs"])):
        largest[result.job["verb"], result.job.get("delta", "0"), result.job["epsilon"]] = result
    lines = []
    for name in ATTACKS:
        for delta in ("0", DELTA):
            found = {epsilon: largest.get((name, delta, epsilon)) for epsilon in EPSILONS}
            if any(found.values()):
                cells = ["" if each is None else _share(each, "99.9 %") for each in found.values()]
                runs = max(sum(finding_in(each).runs) for each in found.values() if each is not None)
                lines.append([f"`{name}`" + (f", δ = {delta}" if delta != "0" else ""), *cells, f"{runs:,}", ATTACKS[name].why])
    if not lines:
        return []
    heads = ["query", *(f"ε = {epsilon}" for epsilon in EPSILONS), "runs each table, at most", "one more row"]
    said = "Lower bound on ε as a share of the ε that was paid, at 99.9 % confidence: how much of the guarantee an attacker finds used."
    return [said, Table(heads, lines)]


def _owners_table(results: Sequence[Result]) -> list[Block]:
    found = {(result.job["together"], result.job["epsilon"]): result for result in results}
    lines = []
    for name in OWNERS:
        own = [found.get((name, epsilon)) for epsilon in EPSILONS]
        if any(own):
            cells = ["" if each is None else _share(each, "99.9 %") for each in own]
            lines.append([name, *cells, f"{max(sum(finding_in(each).runs) for each in own if each is not None):,}"])
    if not lines:
        return []
    said = (
        "Owners who count together (`leaf_counts`, [TOGETHER.md](TOGETHER.md)): one row more in the table of one of them, attacked by "
        "those who look, with all that they see: their own rows and shares of the noise, the pieces that they get, the sums that are "
        "opened, the result. With 3 owners, t = 2 each adds a whole draw, as two who look need; a run takes t below half."
    )
    return [said, Table(["owners", *(f"ε = {epsilon}" for epsilon in EPSILONS), "runs each table, at most"], lines)]


def _fit_table(results: Sequence[Result]) -> list[Block]:
    lines = []
    for result in sorted(results, key=lambda each: (list(ALGORITHMS).index(each.job["fit"]), each.job.get("delta", "0"), each.job["pair"])):
        finding, delta = finding_in(result), result.job.get("delta")
        one, two = finding.shares
        told = f"{one:.3f} {finding.likelier} the row, {two:.3f} on the other table"
        name = result.job["fit"] + (f", δ = {delta}" if delta else "")
        cells = [_share(result, "95 %"), _share(result, "99.9 %"), "VIOLATED" if finding.violated else "consistent"]
        lines.append([name, finding.pair, f"{result.job['runs']:,}", finding.event, told, *cells])
    if not lines:
        return []
    heads = ["algorithm, ε = 1", "pair", "runs each table", "best event found", "its share of runs", "bound, 95 %", "99.9 %", "verdict"]
    return ["Whole training runs: half of them to find the event, half to measure it.", Table(heads, lines)]


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "audit",
        "lower bounds on ε of every query, of owners who count together, and of every private estimator",
        "audit",
        f"Queries: {COSTLY_RUNS:,}, {VERB_RUNS:,} or {MORE_VERB_RUNS:,} runs on each of two neighbouring tables at ε = 0.1, 1 and 5; "
        f"owners who count together: {COSTLY_RUNS:,}. "
        f"Estimators: {FIT_RUNS:,} fits on each table at ε = 1 on the pair {CI_PAIR!r}, {OTHER_FIT_RUNS:,} on the others. "
        "The event is chosen on every other run and measured on the rest.",
        (),
        jobs,
        work,
        blocks,
    ),
)
