"""The report from stored results alone: REPRODUCTION.md, PEERS.md, one HTML page, pictures and tables. The same results, the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import ExperimentError
from hedgerow.experiments.catalogue import AUDITS, OVERALL, PAPERS, PEERS
from hedgerow.experiments.document import Figure, Section, Table, html_page, inside, markdown, with_captions
from hedgerow.experiments.experiment import Claim, Experiment, Result
from hedgerow.experiments.store import Store, key_of

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
AUDIT_PAGE = f"# Audit\n\n{BEGIN}\n{END}\n"
VERDICTS = {"reproduced": "reproduced", "partly": "partly", "not": "**not reproduced**", "open": "open: too few results"}

INTRODUCTION = (
    "Made by `hedgerow experiments report` from the files in `results/`: no number is written by hand. `hedgerow experiments run --all` "
    "makes them from the public sets in the folder that HEDGEROW_DATA names; `--quick` takes minutes; `hedgerow experiments list` shows "
    "what there is."
)
INTERVALS = (
    "± is one standard error. For cross-validation it is the corrected one of Nadeau and Bengio (2003), which allows for training rows "
    "that folds share. A difference is called one only beyond two standard errors of the difference on the same folds. "
    "Our noise is discrete and secret: another run gives other numbers within these errors."
)


def write_report(store: Store, folder: Path) -> list[Path]:
    """All files of the report, into `folder`."""
    page = folder / "AUDIT.md"
    texts = documents(store, page.read_text(encoding="utf-8") if page.exists() else AUDIT_PAGE)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


def documents(store: Store, audit_page: str = AUDIT_PAGE) -> dict[str, str]:
    """The text of each file by its path inside the folder. Experiments without results are left out, and named.

    audit_page: where the results of the audit are put between two marks
    """
    runs = store.runs()
    papers = [_section(experiment, store, runs) for experiment in PAPERS]
    peers = [_section(experiment, store, runs) for experiment in PEERS]
    reproduction = [_head(store), *_claims(store), *(section for section in papers if section)]
    beside = [section for section in peers if section]
    files = {"REPRODUCTION.md": markdown("The papers reproduced", reproduction)}
    if beside:
        files["PEERS.md"] = markdown("Hedgerow beside its peers", [block for section in beside for block in section.blocks])
    attacks = [section for experiment in AUDITS if (section := _section(experiment, store, runs))]
    if attacks:
        files["AUDIT.md"] = _between(audit_page, markdown("", attacks[0].blocks))
    everything = [*reproduction, *beside, *attacks]
    files["experiments.html"] = html_page("Hedgerow: experiments", everything, "Made from stored results by hedgerow experiments report.")
    files |= {f"figures/{block.name}.svg": block.svg + "\n" for block in inside(everything) if isinstance(block, Figure)}
    for experiment, section in zip((*PAPERS, *PEERS), (*papers, *peers), strict=True):
        files |= _tables(experiment, section)
    return files


def _between(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ExperimentError(f"AUDIT.md: expected the lines {BEGIN} and {END}, between which the results of the audit are written.")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def _tables(experiment: Experiment, section: Section | None) -> dict[str, str]:
    found = {}
    tables = [block for block in inside(section.blocks if section else ()) if isinstance(block, Table)]
    for number, table in enumerate(tables, 1):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([table.heads, *table.rows])
        found[f"tables/{experiment.name}{f'-{number}' if len(tables) > 1 else ''}.csv"] = text.getvalue()
    return found


def _head(store: Store) -> Section:
    lines, total = [], 0.0
    for experiment in PAPERS:
        results = store.results(experiment.name)
        seconds = sum(result.seconds for result in results)
        total += seconds
        lines.append([experiment.name, experiment.title, state(experiment, results), hours(seconds)])
    time = f"All of it took {hours(total)} on one core of a machine that others used too; several cores share the work."
    return Section("", [INTRODUCTION, INTERVALS, Table(["experiment", "what", "stored", "time on one core"], lines), time])


def _claims(store: Store) -> list[Section]:
    """All claims of a paper in one table, a section for each paper."""
    sources: dict[str, list[list[str]]] = {}
    results = {experiment.name: store.results(experiment.name) for experiment in PAPERS}
    for experiment in PAPERS:
        if experiment.source not in sources:
            overall = OVERALL[experiment.source](results) if experiment.source in OVERALL else []
            sources[experiment.source] = [["whole paper", *_line(claim)] for claim in overall]
        sources[experiment.source] += [[short(experiment), *_line(claim)] for claim in experiment.claims(results[experiment.name])]
    heads = ["where", "claim", "our figure", "verdict", "why"]
    return [Section(f"Claims: {source}", [_counted(lines), Table(heads, lines)]) for source, lines in sources.items()]


def _line(claim: Claim) -> list[str]:
    return [claim.text, claim.ours, VERDICTS[claim.verdict], claim.why]


def _counted(lines: Sequence[Sequence[str]]) -> str:
    number = {words: sum(line[3] == words for line in lines) for words in VERDICTS.values()}
    parts = [f"{count} {words.strip('*')}" for words, count in number.items() if count]
    return f"{len(lines)} claims: {', '.join(parts)}."


def short(experiment: Experiment) -> str:
    return experiment.title.split(":")[0]


def _section(experiment: Experiment, store: Store, runs: Mapping[str, Mapping[str, Any]]) -> Section | None:
    results = store.results(experiment.name)
    if not results:
        return None
    made = made_of(experiment, results, runs)
    blocks = [f"**Protocol.** {experiment.protocol}", *with_captions(experiment.blocks(results), lambda caption: f"{caption} {made}")]
    if not any(isinstance(block, Figure) for block in inside(blocks)):
        blocks.append(f"*{made}*")
    title = f"{experiment.source}, {experiment.title}" if experiment in PAPERS else experiment.title
    return Section(title, blocks)


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
