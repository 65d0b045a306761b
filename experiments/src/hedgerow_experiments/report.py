"""The report from stored results alone: Markdown documents, one HTML page, pictures and tables. The same results, the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow_experiments import dpdf, dprf, jagannathan_report, sharkey
from hedgerow_experiments.catalogue import AUDITS, LEARNING, OVERALL, PAPERS, PEERS, UNSEEN
from hedgerow_experiments.document import Block, Figure, Section, Table, html_page, inside, markdown, with_captions
from hedgerow_experiments.experiment import Claim, Experiment, Result
from hedgerow_experiments.peers import report as peers
from hedgerow_experiments.store import Store, key_of

VERDICTS = {"reproduced": "reproduced", "partly": "partly", "not": "**not reproduced**", "open": "open"}
OWN_VERDICTS = {"reproduced": "holds", "partly": "partly", "not": "**does not hold**", "open": "open"}

PAPER_PAGES = {  # of docs/: the paper that each page is about
    jagannathan_report.SOURCE: "REPRODUCTION_JAGANNATHAN.md",
    dpdf.SOURCE: "REPRODUCTION_DPDF.md",
    dprf.SOURCE: "REPRODUCTION_DPRF.md",
    sharkey.SOURCE: "REPRODUCTION_SHARKEY.md",
}
WORDS = "What ± and the words mean, how it was run, and the other papers: [REPRODUCTION.md](REPRODUCTION.md)."
AUDIT_WORDS = "How each claim was attacked, and what a verdict means: [AUDIT.md](AUDIT.md)."
INTRODUCTION = (
    "Made by `hedgerow experiments report` from the files in `results/`: no result is written by hand. `hedgerow experiments run --all` "
    "makes them from the public sets in the folder that HEDGEROW_DATA names; `--quick` takes minutes; `hedgerow experiments list` shows "
    "what there is. It is a package of its own: `make experiments` installs it and runs everything; by hand, "
    "`pip install . ./experiments` and `hedgerow experiments run dpdf-figure-7 --quick`."
)
INTERVALS = (
    "± is one standard error. For cross-validation it is the corrected one of Nadeau and Bengio (2003), which allows for training rows "
    "that folds share. A difference is called one only beyond two standard errors of the difference on the same folds. "
    "Our noise is discrete and secret: another run gives other numbers within these errors."
)
GLOSSARY = Table(
    ["word", "meaning"],
    [
        ["clearly", "beyond two standard errors"],
        ["certificate", "the part of a released model that says which queries were asked and what each of them cost"],
        ["β, τ, δ", "of DPDF: ε of the whole model, number of trees, depth with the root at 1 (here never a probability)"],
        ["as published, proven", "DPDF with local sensitivity, whose ε is not proven; with a score whose sensitivity is, so that ε holds"],
        ["BASIS", "a model that is learnt from the rows of all owners, pooled"],
        ["hit and miss", "rows of a path of a tree that are of its class, and that are of others"],
        ["PGEN, BASEGEN", "pseudo-rows from the paths of an owner's tree; random rows that the tree gives a class"],
        ["(c, ℓ)", "the largest class of a group is smaller than c times the ℓ-th largest and all smaller ones together"],
        ["ATP, PPGEN", "pruning of a tree until each path satisfies (c, ℓ); PGEN from such trees"],
        ["LD", "a table that is generalised until each group of equal rows satisfies (c, ℓ)"],
    ],
)


@dataclass(frozen=True)
class Page:
    """One document. name: of its file."""

    name: str
    title: str
    blocks: Sequence[Block]


def write_report(store: Store, folder: Path) -> list[Path]:
    """All files of the report, into `folder`."""
    texts = documents(store)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


def documents(store: Store) -> dict[str, str]:
    """The text of each file by its path inside the folder. Experiments without results are left out, and named."""
    from hedgerow_experiments.drawing import draw  # matplotlib, which nothing else needs

    found = _sections(store)
    pages = [*_paper_pages(store, found), *_peer_pages(found)]
    if growing := _stored(LEARNING, found):
        pages.append(Page("LEARNING.md", "What more rows and more ε bring", growing))
    if unseen := _stored(UNSEEN, found):
        pages.append(Page("PEERS_UNSEEN.md", "On tables that took no part", unseen))
    if attacks := _stored(AUDITS, found):
        pages.append(Page("AUDIT_RESULTS.md", "What the audit found", [AUDIT_WORDS, *attacks[0].blocks]))
    files = {page.name: markdown(page.title, page.blocks) for page in pages}
    pictures = {block.name: draw(block.chart) for page in pages for block in inside(page.blocks) if isinstance(block, Figure)}
    made = "Made from stored results by hedgerow experiments report."
    everything = [block for page in pages for block in (Section(page.title, []), *page.blocks)]
    files["experiments.html"] = html_page("Hedgerow: experiments", everything, pictures, made)
    files |= {f"figures/{name}.svg": picture + "\n" for name, picture in pictures.items()}
    for experiment in (*PAPERS, *PEERS, *LEARNING, *UNSEEN):
        files |= _tables(experiment, found.get(experiment.name))
    return files


def _paper_pages(store: Store, found: Mapping[str, Section]) -> list[Page]:
    """One page that leads to the others, and one for each paper: its claims, then its tables and figures."""
    claims, pages = _claims(store), []
    for source, blocks in claims.items():
        experiments = _stored([experiment for experiment in PAPERS if experiment.source == source], found)
        pages.append(Page(PAPER_PAGES[source], source, [WORDS, Section("Claims", blocks), *experiments]))
    papers = [[f"[{page.title}]({page.name})", str(claims[page.title][0])] for page in pages]
    return [Page("REPRODUCTION.md", "The papers reproduced", _head(store, Table(["paper", "what came out"], papers))), *pages]


def _peer_pages(found: Mapping[str, Section]) -> list[Page]:
    """The page of means and of who leads, and those that take some of its sections."""
    sections = [Section("", found[each.name].blocks) if each.name == "peers" else found[each.name] for each in PEERS if each.name in found]
    every = [inner for section in sections for inner in ([section] if section.title else section.blocks)]
    titled = {block.title: block for block in every if isinstance(block, Section)}
    pages, taken = [], set[str]()
    for name, (title, titles) in peers.PAGES.items():
        if own := [titled[each] for each in titles if each in titled]:
            pages.append(Page(name, title, [peers.WORDS, *(own[0].blocks if len(titles) == 1 else own)]))
        taken |= set(titles)
    first = [block for block in every if not (isinstance(block, Section) and block.title in taken)]
    return [Page("PEERS.md", "Hedgerow beside its peers", [peers.OTHERS, *first]), *pages] if every else []


def _tables(experiment: Experiment, section: Section | None) -> dict[str, str]:
    found = {}
    tables = [block for block in inside(section.blocks if section else ()) if isinstance(block, Table)]
    for number, table in enumerate(tables, 1):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([table.heads, *table.rows])
        found[f"tables/{experiment.name}{f'-{number}' if len(tables) > 1 else ''}.csv"] = text.getvalue()
    return found


def _head(store: Store, papers: Table) -> list[Block]:
    lines, total = [], 0.0
    for experiment in PAPERS:
        results = store.results(experiment.name)
        seconds = sum(result.seconds for result in results)
        total += seconds
        lines.append([experiment.name, experiment.title, state(experiment, results), hours(seconds)])
    time = f"All of it took {hours(total)} on one core of a machine that others used too; several cores share the work."
    stored = Table(["experiment", "what", "stored", "time on one core"], lines)
    return [
        INTRODUCTION,
        papers,
        Section("What the words mean", [INTERVALS, GLOSSARY]),
        Section("What was run", [stored, time]),
    ]


def _claims(store: Store) -> dict[str, list[Block]]:
    """Of each paper how many of its claims have which verdict, and all of them in one table."""
    sources: dict[str, list[tuple[str, Claim]]] = {}
    results = {experiment.name: store.results(experiment.name) for experiment in PAPERS}
    for experiment in PAPERS:
        if experiment.source not in sources:
            overall = OVERALL[experiment.source](results) if experiment.source in OVERALL else []
            sources[experiment.source] = [("whole paper", claim) for claim in overall]
        sources[experiment.source] += [(short(experiment), claim) for claim in experiment.claims(results[experiment.name])]
    heads = ["where", "claim", "our figure", "verdict", "why"]
    return {
        source: [counted([claim for _, claim in found]), Table(heads, [[where, *cells_of(claim)] for where, claim in found])]
        for source, found in sources.items()
    }


def cells_of(claim: Claim) -> list[str]:
    """A claim as cells of the table."""
    words = (OWN_VERDICTS if claim.own else VERDICTS)[claim.verdict]
    if claim.given and claim.verdict == "reproduced":
        words = "agrees, not measured"
    ours = claim.ours or ("too few results" if claim.verdict == "open" else "")
    return [claim.text, ours, f"{words} (part)" if claim.part else words, claim.why]


def counted(claims: Sequence[Claim]) -> str:
    """How many of the paper's claims have which verdict; parts of others, our own and those not measured are told beside it."""
    once = [claim for claim in claims if not claim.part]
    judged = [claim for claim in once if not (claim.own or claim.given)]
    number = {words: sum(VERDICTS[claim.verdict] == words for claim in judged) for words in VERDICTS.values()}
    parts = [f"{count} {words.strip('*')}" for words, count in number.items() if count]
    told = f"{len(judged)} claims of the paper: {', '.join(parts)}"
    own, given, repeated = sum(claim.own for claim in once), sum(claim.given for claim in once), len(claims) - len(once)
    told += f"; and {own} of our own" if own else ""
    told += f"; {given} more follows from a formula and is not counted" if given else ""
    if repeated:
        told += f". A sentence about the whole paper counts once: the {repeated} lines that say what it means for one figure (part) do not"
    return f"{told}."


def short(experiment: Experiment) -> str:
    return experiment.title.split(":")[0]


def _sections(store: Store) -> dict[str, Section]:
    """One for each experiment with results. A protocol that is that of the section before is printed there alone."""
    found: dict[str, Section] = {}
    runs = store.runs()
    for experiments in (PAPERS, PEERS, LEARNING, UNSEEN, AUDITS):
        told: Experiment | None = None  # whose protocol was printed last
        for experiment in experiments:
            results = store.results(experiment.name)
            if results:
                same = told is not None and (told.source, told.protocol) == (experiment.source, experiment.protocol)
                protocol = f"As for {short(told)}." if told and same else experiment.protocol
                told = told if same else experiment
                found[experiment.name] = _section(experiment, protocol, results, runs)
    return found


def _stored(experiments: Sequence[Experiment], found: Mapping[str, Section]) -> list[Section]:
    return [found[experiment.name] for experiment in experiments if experiment.name in found]


def _section(experiment: Experiment, protocol: str, results: Sequence[Result], runs: Mapping[str, Mapping[str, Any]]) -> Section:
    made = made_of(experiment, results, runs)
    blocks = [f"**Protocol.** {protocol}", *with_captions(experiment.blocks(results), lambda caption: f"{caption} {made}")]
    if not any(isinstance(block, Figure) for block in inside(blocks)):
        blocks.append(f"*{made}*")
    return Section(experiment.title, blocks)


def state(experiment: Experiment, results: Sequence[Result]) -> str:
    """How much of the protocol is stored."""
    have = {key_of(result.job) for result in results}
    full, quick = ([key_of(job) in have for job in experiment.jobs(few)] for few in (False, True))
    if all(full):
        return f"full: {len(full)} jobs"
    if not any(full):
        return "nothing"
    return f"{'quick' if all(quick) and sum(full) == len(quick) else 'part'}: {sum(full)} of {len(full)} jobs"


def made_of(experiment: Experiment, results: Sequence[Result], runs: Mapping[str, Mapping[str, Any]]) -> str:
    """When, with what, and how much of the protocol."""
    stored = state(experiment, results)
    marked = f"{stored[0].upper()}{stored[1:]}" if stored.startswith("full") else f"NOT THE FULL PROTOCOL, {stored}"
    used = [runs[name] for name in sorted({result.run for result in results}) if name in runs]
    days = sorted({run["started"][:10] for run in used})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "unknown"
    versions = sorted({f"{name} {number}" for run in used for name, number in run["versions"].items()})
    data = sorted({f"{name} {digest[:8]}" for run in used for name, digest in run["data"].items() if name in experiment.sets})
    files = f"; data (SHA-256): {', '.join(data)}" if data else ""
    return f"{marked}; run {when} with {', '.join(versions)}{files}."


def hours(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
