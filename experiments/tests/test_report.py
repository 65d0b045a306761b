"""The report: from stored results alone, and the documents and figures in the repository are what it makes."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest
from typer.testing import CliRunner

from hedgerow.cli import app
from hedgerow.errors import ExperimentError
from hedgerow_experiments.catalogue import EXPERIMENTS, PAPERS, chosen
from hedgerow_experiments.experiment import Claim
from hedgerow_experiments.report import cells_of, counted, documents, made_of, state
from hedgerow_experiments.statistics import Mean, cross_validated_mean, difference
from hedgerow_experiments.store import Store, key_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
run = CliRunner().invoke


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return documents(Store(DOCS))


def test_the_documents_are_what_the_stored_results_say(made: dict[str, str]) -> None:
    """A sentence that was changed by hand, or results without a new report, fail here."""
    pages = [name for name in made if name.endswith(".md")]
    assert {"REPRODUCTION.md", "REPRODUCTION_DPDF.md", "PEERS.md", "PEERS_SETS.md", "LEARNING.md", "AUDIT_RESULTS.md"} <= set(pages)
    for name in pages:
        assert (DOCS / name).read_text(encoding="utf-8") == made[name], f"{name}: run `hedgerow experiments report --folder docs`"


def test_the_figures_are_what_the_stored_results_say(made: dict[str, str]) -> None:
    """Byte by byte with the version of matplotlib that drew them (constraints.txt); with another one, all that is written in them."""
    pictures = {name for name in made if name.startswith("figures/")}
    assert pictures == {f"figures/{path.name}" for path in (DOCS / "figures").glob("*.svg")}
    for name in pictures:
        stored = (DOCS / name).read_text(encoding="utf-8")
        assert len(stored) < 100_000, name
        if f"Matplotlib v{matplotlib.__version__}," in stored:
            assert stored == made[name], name
        else:
            assert written_in(stored) == written_in(made[name]), name


def written_in(svg: str) -> list[str]:
    return sorted(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_stored_results_are_of_the_full_protocol() -> None:
    store = Store(DOCS)
    for experiment in EXPERIMENTS.values():
        assert state(experiment, store.results(experiment.name)).startswith("full"), experiment.name


def test_every_stored_result_names_its_run_and_every_run_its_data() -> None:
    store = Store(DOCS)
    runs = store.runs()
    for name in store.experiments():
        for result in store.results(name):
            assert result.run in runs, name
    for line in runs.values():
        assert {"hedgerow", "python"} <= set(line["versions"])
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in line["data"].values())


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_quick_jobs_are_some_of_the_full_ones(name: str) -> None:
    experiment = EXPERIMENTS[name]
    full, quick = ([key_of(job) for job in experiment.jobs(few)] for few in (False, True))
    assert len(set(full)) == len(full)
    assert set(quick) <= set(full)
    assert experiment.protocol


@pytest.mark.parametrize("name", [experiment.name for experiment in PAPERS])
def test_without_results_every_claim_is_open(name: str) -> None:
    claims = EXPERIMENTS[name].claims([])
    assert claims
    assert {claim.verdict for claim in claims} == {"open"}
    EXPERIMENTS[name].blocks([])


def test_a_caption_says_that_a_result_is_not_of_the_full_protocol() -> None:
    experiment = EXPERIMENTS["dpdf-figure-2"]
    store = Store(DOCS)
    every = store.results(experiment.name)
    quick = {key_of(job) for job in experiment.jobs(True)}
    few = [result for result in every if key_of(result.job) in quick]
    assert "NOT THE FULL PROTOCOL, quick" in made_of(experiment, few, store.runs())
    assert made_of(experiment, every, store.runs()).startswith("Full")


def test_the_tally_counts_each_sentence_of_the_paper_once() -> None:
    claims = [
        Claim("a", "1", "reproduced"),
        Claim("b", "", "open"),
        Claim("c", "1", "not"),
        Claim("a, here", "1", "not", part=True),
        Claim("mine", "1", "not", own=True),
        Claim("mine, here", "1", "not", own=True, part=True),
        Claim("k", "1", "reproduced", given=True),
    ]
    told = counted(claims)
    assert told.startswith("3 claims of the paper: 1 reproduced, 1 not reproduced, 1 open; and 1 of our own; 1 more follows from a formula")
    assert "the 2 lines" in told
    assert counted(claims[:1]) == "1 claims of the paper: 1 reproduced."
    assert [cells_of(claim)[2].replace("*", "") for claim in claims] == [
        "reproduced", "open", "not reproduced", "not reproduced (part)", "does not hold", "does not hold (part)", "agrees, not measured",
    ]  # fmt: skip
    assert cells_of(claims[1])[1] == "too few results"
    assert cells_of(Claim("mine", "1", "reproduced", own=True))[2] == "holds"


def test_a_protocol_is_printed_once_where_the_next_is_the_same(made: dict[str, str]) -> None:
    text = " ".join(" ".join(page for name, page in made.items() if name.startswith("REPRODUCTION")).split())
    assert text.count(EXPERIMENTS["dpdf-figure-2"].protocol) == 1
    assert text.count("**Protocol.** As for Figure 2.") == 5
    assert all(text.count(EXPERIMENTS[name].protocol) == 1 for name in ("jagannathan-figure-2", "sharkey-figure-5", "dprf-figure-1"))


def test_text_is_wrapped_and_every_section_stands_on_one_page(made: dict[str, str]) -> None:
    pages = {name: page.splitlines() for name, page in made.items() if name.endswith(".md")}
    for name, lines in pages.items():
        assert [line for line in lines if len(line) > 120 and not line.startswith(("|", "!["))] == [], name
    titles = [line for name, lines in pages.items() for line in lines if line.startswith("## ") and line != "## Claims"]
    figures = [line for line in titles if line.startswith(("## Figure", "## Table"))]
    assert len(figures) == len(PAPERS)
    peers = [line for name, lines in pages.items() if name.startswith("PEERS") for line in lines if line.startswith("#")]
    assert len(set(peers)) == len(peers)


def test_names_may_be_beginnings() -> None:
    assert [each.name for each in chosen(["dpdf"])] == [name for name in EXPERIMENTS if name.startswith("dpdf-")]
    assert [each.name for each in chosen(["dprf-figure-1", "dprf"])] == ["dprf-figure-1"]
    with pytest.raises(ExperimentError, match="expected one of jagannathan-table-1"):
        chosen(["dpd"])


def test_errors_of_means_are_corrected_for_folds_that_share_rows() -> None:
    values = [0.5, 0.6, 0.7, 0.8]
    assert cross_validated_mean(values, folds=5) == Mean(pytest.approx(0.65), pytest.approx((1 / 4 + 1 / 4) ** 0.5 * 0.1290994), 4)
    assert difference([0.9, 0.8], [0.5, 0.4]).mean == pytest.approx(0.4)
    assert not cross_validated_mean([0.5]).clear  # one value has no error, so nothing is clear
    assert Mean(0.3, 0.1, 9).clear
    assert not Mean(0.15, 0.1, 9).clear


def test_commands_refuse_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEDGEROW_DATA", raising=False)
    for words, expected in (
        (["run"], "hedgerow experiments list"),
        (["run", "nonsense"], "expected one of"),
        (["run", "dpdf-table-1"], "export HEDGEROW_DATA"),
        (["report"], "has no results"),
        (["list", "nonsense"], "expected one of"),
    ):
        result = run(app, ["experiments", *words, "--folder", str(tmp_path)])
        assert result.exit_code == 2, (words, result.output)
        assert expected in result.stderr, (words, result.stderr)
    assert not any(tmp_path.iterdir())


def test_the_list_shows_what_is_stored() -> None:
    shown = run(app, ["experiments", "list", "--folder", str(DOCS)]).output
    assert all(name in shown for name in EXPERIMENTS)
    assert "full: 30 jobs" in shown
    assert "certificate" in run(app, ["experiments", "list", "dpdf-table-1", "--folder", str(DOCS)]).output
