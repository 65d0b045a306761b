"""`hedgerow plan --save`, `count` and `update`: owners who count their own rows, with the commands that they would type."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hedgerow import BudgetFile, Release
from hedgerow.accounting.paid_counts import Counts
from hedgerow.cli.budget_source import TrackedBudgetFile
from hedgerow.engines.files import TableFile
from hedgerow.errors import BudgetError, MergeError, ReleaseError
from hedgerow.release.files import with_hash
from hedgerow.release.public_plan import PlanDocument, PublicPlan

DATA = Path(__file__).parents[1] / "data"
RDT = ["--algorithm", "rdt", "--trees", 4, "--depth", 2, "--epsilon", "0.5", "--seed", 1]
WAIT = 180
BUILT: dict[str, bytes] = {}


@pytest.fixture
def here(place: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """`place` as the current folder, with three tables of 600 rows, one that lacks a column, and a schema that is not reviewed."""
    monkeypatch.chdir(place.folder)
    head, *rows = place.data.read_text().splitlines(keepends=True)
    for i, name in enumerate("abc"):
        Path(f"office-{name}.csv").write_text(head + "".join(rows[600 * i : 600 * (i + 1)]))
    Path("narrow.csv").write_text("smoker,age,ill\nnever,1,no\n")
    Path("draft.toml").write_text(place.schema.read_text().replace('kind = "num', 'unreviewed = true\nkind = "num'))
    return place


@pytest.fixture
def planned(here: SimpleNamespace, run: Callable[..., Any]) -> SimpleNamespace:
    """A plan of four trees, ε = 0.5 for each owner, and a forest of office a that was counted with it."""
    if not BUILT:  # once: the tests get copies
        done(run("plan", "--schema", "schema.toml", *RDT, "--rows", 1800, "--owners", 3, "--save", "plan.json"))
        done(run("count", "plan.json", "office-a.csv", "-o", "forest.json", "--owner", "office a", "--batch", "january", "--disjoint"))
        BUILT.update({name: Path(name).read_bytes() for name in ("plan.json", "forest.json")})
    for name, content in BUILT.items():
        Path(name).write_bytes(content)
    return here


def done(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return result


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


def refused(result: Any, code: int, words: str) -> None:
    """One message with the reason, and no traceback."""
    assert result.exit_code == code, result.output
    assert "error: " in result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.output


# ---------------------------------------------------------------- plan --save


@pytest.mark.parametrize("options", [RDT, ["--algorithm", "snr", "--epsilon", "0.5"], ["--epsilon", "0.5"]], ids=["rdt", "snr", "hedgerow"])
def test_a_plan_is_shown_saved_and_holds_no_data(options: list[Any], here: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = done(run("plan", "--schema", "schema.toml", *options, "--rows", 1800, "--save", "plan.json"))
    for words in ("ε for each owner", "0.5", "1,800", "noise on a count", "saved plan.json", "hedgerow count plan.json"):
        assert words in result.stdout
    assert ("seed " if "--algorithm" in options else "nothing in it is drawn") in result.stdout
    assert "ε in all" not in result.stdout
    document = json.loads(Path("plan.json").read_text())
    assert (document["format"], document["epsilon"], document["schema"]["rows"]) == ("hedgerow-plan", "0.5", 1800)
    checked = done(run("verify", "plan.json"))
    assert "it holds no data" in checked.stdout
    assert "signed by: nobody" in checked.stdout
    assert document["content_hash"] in checked.stdout
    again = ["plan", "--schema", "schema.toml", *RDT, "--epsilon", 1, "--rows", 1800, "--save", "plan.json"]
    refused(run(*again), 2, "exists already")
    done(run(*again, "--force"))
    assert json.loads(Path("plan.json").read_text())["epsilon"] == "1"


@pytest.mark.parametrize("options", [[*RDT, "--trees", 20], ["--epsilon", "0.5"]], ids=["rdt", "hedgerow"])
def test_a_plan_with_a_delta_is_counted_and_merged(options: list[Any], here: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = done(run("plan", "--schema", "schema.toml", *options, "--delta", "1e-6", "--rows", 1800, "--save", "plan.json"))
    assert "for each owner" in result.stdout
    assert "δ = 1e-06" in result.stdout
    assert ("without δ there would be less noise" in result.stderr) == ("--trees" not in options)  # a table for each of few attributes
    assert "δ = 1e-06) for each table" in done(run("verify", "plan.json")).stdout
    refused(run("count", "plan.json", "data.csv", "--budget", "budget.json", "-o", "a.json"), 3, "pays for pure ε alone")
    done(run("budget", "init", "with-delta.json", "--epsilon", 2, "--delta", "1e-5"))
    for name in "ab":
        done(run("count", "plan.json", "data.csv", "--budget", "with-delta.json", "--disjoint", "--owner", name, "-o", f"{name}.json"))
    done(run("merge", "a.json", "b.json", "-o", "forest.json"))
    assert Release.load("forest.json").certificate.loss == "(ε = 0.5, δ = 1e-06)"


def test_rows_that_the_schema_declares_are_enough(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    here.schema.write_text("rows = 1800\n" + here.schema.read_text())
    done(run("plan", "--schema", "schema.toml", "--epsilon", 1, "--save", "plan.json"))
    assert json.loads(Path("plan.json").read_text())["schema"]["rows"] == 1800


def test_a_plan_shows_the_noise_of_all_owners_together(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    def noise(*more: object) -> str:
        text: str = run("plan", "--schema", "schema.toml", *RDT, "--rows", 1800, *more).stdout
        return text.split("noise on a count")[1].splitlines()[0]

    alone, nine = noise(), noise("--owners", 9)
    assert "of 9 tables together" in nine
    number = float(alone.split()[2].rstrip(","))
    assert float(nine.split()[2].rstrip(",")) == pytest.approx(3 * number, rel=0.01)  # independent noise: a root of nine
    assert noise("--owners", 9, "--save", "plan.json") == nine
    assert json.loads(Path("plan.json").read_text())["tables"] == 9


BAD_PLANS: dict[str, tuple[list[Any], str]] = {
    "greedy trees": (["--algorithm", "dpdf", "--epsilon", 1, "--save", "plan.json"], "looking at the rows"),
    "an older greedy tree": (["--algorithm", "private-id3", "--epsilon", 1, "--save", "plan.json"], "looking at the rows"),
    "no privacy": (["--algorithm", "plain-rdt", "--rows", 100, "--save", "plan.json"], "no privacy"),
    "no privacy, greedy": (["--algorithm", "id3", "--save", "plan.json"], "no privacy"),
    "greedy trees of several owners": (["--algorithm", "dpdf", "--epsilon", 1, "--owners", 2], "hedgerow, rdt and snr can"),
    "no number of rows": (["--algorithm", "snr", "--epsilon", 1, "--save", "plan.json"], "--rows"),
    "a δ of a greedy tree": (["--algorithm", "dpdf", "--epsilon", 1, "--delta", "1e-6", "--save", "plan.json"], "--delta"),
    "no rows at all": (["--epsilon", 1, "--rows", 0, "--save", "plan.json"], "at least 1"),
    "no ε": (["--rows", 100, "--save", "plan.json"], "--epsilon 1"),
    "a signature on nothing": (["--epsilon", 1, "--rows", 100, "--sign", "a.key"], "--save plan.json"),
    "no such key": (["--epsilon", 1, "--rows", 100, "--save", "plan.json", "--sign", "absent.key"], "cannot be read"),
    "no key": (["--epsilon", 1, "--rows", 100, "--save", "plan.json", "--sign", "data.csv"], "not an Ed25519 private key"),
    "an unreviewed schema": (["--schema", "draft.toml", "--epsilon", 1, "--rows", 100, "--save", "plan.json"], "age"),
    "an existing file": (["--epsilon", 1, "--rows", 100, "--save", "budget.json"], "--force"),
    "its own schema": (["--epsilon", 1, "--rows", 100, "--save", "schema.toml", "--force"], "also an input"),
    "no such folder": (["--epsilon", 1, "--rows", 100, "--save", "nowhere/plan.json"], "does not exist"),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_a_plan_that_nobody_could_share_is_refused(case: str, here: SimpleNamespace, run: Callable[..., Any]) -> None:
    options, words = BAD_PLANS[case]
    before = files(here.folder)
    refused(run("plan", "--schema", "schema.toml", *options), 2, words)
    assert files(here.folder) == before


def test_trees_that_somebody_chose_are_noticed(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """The hash fits again, but the trees no longer follow from the seed."""
    plain = json.loads(Path("plan.json").read_text())
    for change in ({"trees": plain["trees"][1:2] + plain["trees"][1:]}, {"seed": 2}, {"seed": None}):
        changed = with_hash(msgspec.convert({**plain, **change}, type=PlanDocument))
        Path("plan.json").write_bytes(msgspec.json.encode(changed))
        result = run("verify", "plan.json")
        assert result.exit_code == 1, result.output
        assert "its trees do not follow from its schema, settings and seed" in result.stderr
        assert "it holds no data" not in result.stdout


@pytest.mark.parametrize("setting", ["max_depth", "max_leaves"])
def test_settings_that_make_no_sense_are_one_message(setting: str, planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    plain = json.loads(Path("plan.json").read_text())
    plain["parameters"][setting] = "many"
    Path("plan.json").write_bytes(msgspec.json.encode(with_hash(msgspec.convert(plain, type=PlanDocument))))
    result = run("verify", "plan.json")
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code in (1, 2)


# ---------------------------------------------------------------- count


def test_a_count_is_charged_once_and_before_the_table_is_read(
    planned: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    opened = TableFile.open

    def watched(table: TableFile, *what: Any) -> Any:
        seen.append([(str(entry.reserved), entry.spent) for entry in BudgetFile(planned.budget).entries])
        return opened(table, *what)

    monkeypatch.setattr(TableFile, "open", watched)
    result = done(run("count", "plan.json", "office-b.csv", "-o", "office-b.json", "--budget", "budget.json", "--disjoint"))
    assert seen == [[("1/2", None)]]
    (entry,) = BudgetFile(planned.budget).entries
    assert (str(entry.reserved), str(entry.spent)) == ("1/2", "1/2")
    for words in ("saved office-b.json", "ε = 0.5 differential privacy", "owner: office-b", "budget budget.json: ε = 1.5 of 2 left"):
        assert words in result.stdout
    assert "--disjoint" not in result.stdout  # it was stated
    (part,) = Release.load("office-b.json").certificate.parts
    assert (part.owner, part.epsilon, part.disjoint) == ("office-b", "0.5", True)


def test_the_same_counts_are_not_paid_twice_from_a_budget_file(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """They were, without a word, and `merge` refused them afterwards."""
    words = ["count", "plan.json", "office-b.csv", "--owner", "b", "--disjoint", "--budget", "budget.json"]
    done(run(*words, "-o", "b.json"))
    result = run(*words, "-o", "b2.json")
    refused(result, 2, "budget.json has paid for these counts already")
    said = " ".join(result.stderr.split())
    assert f"(count Private-RDT of 'b': ε = 0.5 at {BudgetFile(planned.budget).entries[0].when})" in said
    assert "Nothing was spent" in said
    assert "name them: --batch NAME; if they are other people's, --owner NAME; or to pay anew, --again." in said
    assert not Path("b2.json").exists()
    assert str(BudgetFile(planned.budget).spent) == "1/2"
    done(run(*words, "-o", "b2.json", "--again"))
    refused(run(*words, "-o", "b3.json"), 2, "has paid for these counts already")
    done(run(*words, "-o", "b3.json", "--batch", "february"))  # other rows
    done(run(*[word if word != "b" else "c" for word in words], "-o", "c.json"))  # another owner
    assert BudgetFile(planned.budget).spent == 2


def test_another_output_is_no_other_owner(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """The same command with another name for its output was paid again, as another owner, and merged with the first."""
    words = ["count", "plan.json", "office-b.csv", "--disjoint", "--budget", "budget.json"]
    done(run(*words, "-o", "office-b.json"))
    result = run(*words, "-o", "office-b-new.json")
    refused(result, 2, "budget.json has paid for counts in these trees already, and nothing says that these are other rows")
    assert f"(count Private-RDT of 'office-b': ε = 0.5 at {BudgetFile(planned.budget).entries[0].when})" in " ".join(result.stderr.split())
    assert not Path("office-b-new.json").exists()
    assert str(BudgetFile(planned.budget).spent) == "1/2"
    done(run(*words, "-o", "march.json", "--batch", "march"))  # other rows
    result = run(*words, "-o", "march-new.json", "--batch", "march")
    refused(result, 2, "budget.json has paid for counts in these trees already")
    assert "of 'march', batch 'march': ε = 0.5" in " ".join(result.stderr.split())
    done(run(*words, "-o", "c.json", "--owner", "office c"))  # other people
    assert str(BudgetFile(planned.budget).spent) == "3/2"
    done(run(*words, "-o", "office-b-new.json", "--again"))
    assert BudgetFile(planned.budget).spent == 2


def test_counts_name_the_trees_as_their_plan_does(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Rows that were counted by a plan were paid for again where counts with its trees were given for the plan."""
    words = ["office-b.csv", "--disjoint", "--budget", "budget.json"]
    done(run("count", "plan.json", *words, "-o", "b.json"))
    for trees in ("b.json", "forest.json"):
        refused(run("count", trees, *words, "-o", "b2.json"), 2, "budget.json has paid for counts in these trees already")
        refused(run("count", trees, *words, "-o", "b2.json", "--owner", "b"), 2, "budget.json has paid for these counts already")
    done(run("count", "forest.json", *words, "-o", "march.json", "--owner", "b", "--batch", "march"))
    refused(run("count", "plan.json", *words, "-o", "b2.json", "--owner", "b", "--batch", "march"), 2, "has paid for these counts already")
    assert BudgetFile(planned.budget).spent == 1


def test_counts_in_a_forest_that_an_older_budget_file_has_paid_for(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Until lately its entries named a forest by its counts."""
    words = ["count", "forest.json", "office-b.csv", "--owner", "b", "--budget", "budget.json"]
    done(run(*words, "-o", "b.json"))
    document = json.loads(planned.budget.read_text())
    forest = Release.load("forest.json").content_hash
    key = hashlib.sha256(json.dumps([forest, "b", None]).encode()).hexdigest()[:32]
    document["entries"][0] |= {"key": key, "what": "count Private-RDT of 'b'"}
    planned.budget.write_text(json.dumps(document))
    refused(run(*words, "-o", "b2.json"), 2, "budget.json has paid for these counts already")


def test_a_budget_file_from_before_keeps_what_was_paid(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Keys of its entries named the trees, the owner and the batch in one."""
    words = ["count", "plan.json", "office-b.csv", "--owner", "b", "--disjoint", "--budget", "budget.json"]
    done(run(*words, "-o", "b.json"))
    document = json.loads(planned.budget.read_text())
    for entry, after in zip((document["entries"] * 2), ("", "-1"), strict=True):
        entry["key"] = entry["key"].split("-")[0] + after
        planned.budget.write_text(json.dumps(document))
        refused(run(*words, "-o", "b2.json"), 2, "budget.json has paid for these counts already")
    plan = PublicPlan.load("plan.json").content_hash  # until lately with its ε
    document["entries"][0]["key"] = hashlib.sha256(json.dumps([plan, "b", None]).encode()).hexdigest()[:32]
    planned.budget.write_text(json.dumps(document))
    refused(run(*words, "-o", "b2.json"), 2, "budget.json has paid for these counts already")
    done(run(*words, "-o", "b2.json", "--again"))


def test_a_count_without_a_statement_says_what_that_means(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = done(run("count", "plan.json", "office-b.csv", "-o", "b.json.gz", "--owner", "Büro B", "--batch", "2026-03"))
    assert "no --budget" in result.stderr
    assert "owner: Büro B, batch: 2026-03" in result.stdout
    assert "merge --disjoint" in result.stdout
    done(run("show", "b.json.gz"))


def test_tables_of_a_forest_stand_behind_its_trees(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """With their whole ε, unless it is stated that taking these trees did not depend on their counts: then everybody is told so."""
    words = ["forest.json", "office-b.csv", "--owner", "b"]
    result = done(run("count", *words, "-o", "b.json"))
    assert "guarantee: ε = 1 " in result.stdout.replace("\n", " ")
    assert "--trees-chosen-beforehand" in result.stdout
    assert [(part.owner, part.counted, part.epsilon) for part in Release.load("b.json").certificate.parts] == [
        ("b", True, "0.5"), ("office a", False, "0.5"),
    ]  # fmt: skip
    result = done(run("count", *words, "-o", "stated.json", "--trees-chosen-beforehand"))
    assert "--trees-chosen-beforehand" not in result.stdout
    assert Release.load("stated.json").certificate.epsilon == "0.5"
    said = "whoever counted in these trees states that taking them did not depend on the counts of: office a (january)"
    for command in (["show", "stated.json", "--certificate"], ["show", "stated.json", "--report", "stated.html"]):
        result = done(run(*command))
        shown = result.stdout if "--certificate" in command else Path("stated.html").read_text()
        assert said in " ".join(shown.split())
        assert "stated: they were taken without regard to its counts" in " ".join(shown.replace("│", " ").split())


BAD_COUNTS = {
    "missing column": (["plan.json", "narrow.csv"], 2, "sex"),
    "no such table": (["plan.json", "absent.csv"], 2, "no such file"),
    "no such plan": (["absent.json", "office-b.csv"], 2, "cannot be read"),
    "not a plan": (["schema.toml", "office-b.csv"], 2, "schema.toml"),
    "no such budget": (["plan.json", "office-b.csv", "--budget=absent.json"], 3, "budget init"),
    "budget too small": (["plan.json", "office-b.csv", "--budget=poor.json"], 3, "short by 0.3"),
    "no such key": (["plan.json", "office-b.csv", "--sign", "absent.key"], 2, "cannot be read"),
    "no key": (["plan.json", "office-b.csv", "--sign", "schema.toml"], 2, "not an Ed25519 private key"),
    "existing output": (["plan.json", "office-b.csv", "-o", "test.csv"], 2, "--force"),
    "output is the plan": (["plan.json", "office-b.csv", "-o", "plan.json", "--force"], 2, "also an input"),
    "output in no folder": (["plan.json", "office-b.csv", "-o", "nowhere/b.json"], 2, "does not exist"),
    "empty owner": (["plan.json", "office-b.csv", "--owner", ""], 2, "owner"),
    "very long owner": (["plan.json", "office-b.csv", "--owner", "b" * 201], 2, "owner"),
    "unprintable owner": (["plan.json", "office-b.csv", "--owner", "b\x1b[2J"], 2, "owner"),
    "two lines of owner": (["plan.json", "office-b.csv", "--owner", "b\nguarantee: ε = 0"], 2, "owner"),
    "empty batch": (["plan.json", "office-b.csv", "--batch", ""], 2, "batch"),
    "batch in the forest": (["forest.json", "office-b.csv", "--owner", "office a", "--batch", "january"], 2, "january"),
    "another ε": (["plan.json", "office-b.csv", "--epsilon", "0.6"], 2, "the plan fixes ε = 0.5"),
    "ε is no number": (["forest.json", "office-b.csv", "--epsilon", "lots"], 2, "finite number"),
    "a statement about trees of no rows": (["plan.json", "office-b.csv", "--trees-chosen-beforehand"], 2, "no rows are behind its trees"),
    "unknown sampler": (["plan.json", "office-b.csv", "--sampler", "dice"], 2, "dice"),
    "no threads": (["plan.json", "office-b.csv", "--jobs", "0"], 2, "--jobs"),
}


@pytest.mark.parametrize("case", BAD_COUNTS)
def test_a_refused_count_leaves_every_file_as_it_was(case: str, planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    words, code, reason = BAD_COUNTS[case]
    BudgetFile.create("poor.json", "0.2")
    before = files(planned.folder)
    given = [*([] if "-o" in words else ["-o", "b.json"]), *([] if "--budget" in " ".join(words) else ["--budget", "budget.json"])]
    result = run("count", *words, *given)
    refused(result, code, reason)
    assert "\x1b" not in result.output
    assert files(planned.folder) == before


def test_a_count_into_a_closed_folder_is_refused_first(
    planned: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**where: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hedgerow.cli.outputs.tempfile.TemporaryFile", refuse)
    before = files(planned.folder)
    refused(run("count", "plan.json", "office-b.csv", "-o", "b.json", "--budget", "budget.json"), 2, "cannot be written to")
    refused(run("update", "forest.json", "office-b.csv", "--budget", "budget.json"), 2, "cannot be written to")
    assert files(planned.folder) == before


@pytest.mark.parametrize("epsilon", ["1000", "20"])
def test_a_large_epsilon_is_not_taken_from_a_file(epsilon: str, here: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["plan", "--schema", "schema.toml", "--algorithm", "rdt", "--depth", 1, "--epsilon", epsilon, "--save", "plan.json"]
    done(run(*words))
    BudgetFile.create("rich.json", 5000)
    count = ["count", "plan.json", "office-a.csv", "-o", "a.json", "--budget", "rich.json"]
    refused(run(*count), 2, f"--epsilon: the file asks for ε = {epsilon}")
    assert BudgetFile("rich.json").spent == 0
    done(run(*count, "--epsilon", epsilon))
    assert BudgetFile("rich.json").spent == int(epsilon)


@pytest.mark.slow
def test_ctrl_c_leaves_the_charge_and_no_half_file(planned: SimpleNamespace, start: Callable[..., Any], run: Callable[..., Any]) -> None:
    head, _, body = planned.data.read_text().partition("\n")
    with open("big.csv", "w") as file:
        file.write(head + "\n")
        for _ in range(2500):  # five million rows: seconds of reading
            file.write(body)
    process = start("count", "plan.json", "big.csv", "-o", "b.json", "--budget", "budget.json")
    try:
        until = time.monotonic() + WAIT
        while not json.loads(planned.budget.read_text())["entries"]:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        os.unlink("big.csv")
    assert process.returncode == 130, said
    assert "interrupted. No counts were saved." in said
    assert "ε = 0.5 stays in budget.json" in said
    assert not list(planned.folder.glob("*b.json*"))
    assert "not settled: stays spent" in run("budget", "show", "budget.json").stdout


# ---------------------------------------------------------------- update


def test_an_owner_who_may_be_in_the_forest_under_another_name_is_warned_of(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """The same rows were added, and paid, as those of "Office a" and of "office-a"."""
    done(run("key", "new", "a.key", "--name", "Office A"))
    for owner in ("Office-A", "OFFICE a", "office a", "office b"):
        result = done(run("update", "forest.json", "office-b.csv", "--owner", owner, "-o", "more.json", "--force"))
        warned = f"{owner!r} is taken for another owner than 'office a', who is in the forest already; but the names are nearly the same"
        assert (warned in " ".join(result.stderr.split())) == (owner in ("Office-A", "OFFICE a"))
    counted = done(run("count", "plan.json", "office-a.csv", "-o", "own.json", "--sign", "a.key"))
    assert "owner: a (the name of the key's file; --owner gives another)" in " ".join(counted.stdout.split())
    result = done(run("count", "own.json", "office-b.csv", "--owner", "x", "-o", "more.json", "--force", "--sign", "a.key"))
    assert "'x' is taken for another owner than 'a', who is in the forest already; but the key that signs is" in " ".join(
        result.stderr.split()
    )


def test_an_update_in_place_adds_a_table(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """By default it costs what the others did; without a statement the losses add, with one the largest counts."""
    result = done(run("update", "forest.json", "office-b.csv", "--batch", "february", "--disjoint", "--budget", "budget.json"))
    for words in ("saved forest.json", "ε = 0.5 differential privacy", "counted tables: 2", "january", "february", "rebuilding: "):
        assert words in result.stdout
    assert "signed before" not in result.stdout
    assert str(BudgetFile(planned.budget).spent) == "1/2"
    more = done(run("update", "forest.json", "office-c.csv", "--epsilon", "0.7", "-o", "more.json", "--budget", "budget.json"))
    assert "ε = 1.2 differential privacy" in more.stdout  # no word about persons: they add up
    assert [len(Release.load(name).certificate.parts) for name in ("forest.json", "more.json")] == [2, 3]
    assert str(BudgetFile(planned.budget).spent) == "6/5"
    refused(run("update", "more.json", "office-c.csv", "--budget", "budget.json"), 2, "different ε")
    added = run("update", "more.json", "office-c.csv", "--epsilon", "0.1", "--batch", "x", "--budget", "budget.json", "--again")
    assert "ε = 1.3 differential privacy" in added.stdout  # neither of the last two is stated to be disjoint
    done(run("predict", "more.json", "test.csv"))


BAD_UPDATES = {
    "a batch that was counted": (["forest.json", "office-a.csv", "--batch", "january"], 2, "january"),
    "the same batch again": (["forest.json", "office-b.csv", "--owner", "office a", "--batch", "january"], 2, "january"),
    "missing column": (["forest.json", "narrow.csv"], 2, "sex"),
    "no such forest": (["absent.json", "office-b.csv"], 2, "absent.json"),
    "a plan": (["plan.json", "office-b.csv"], 2, "it is a plan"),
    "greedy trees": (["dpdf.json", "office-b.csv"], 2, "--algorithm hedgerow, rdt or snr"),
    "budget too small": (["forest.json", "office-b.csv", "--epsilon", "2.5"], 3, "short by 0.5"),
    "no key": (["forest.json", "office-b.csv", "--sign", "schema.toml"], 2, "not an Ed25519 private key"),
    "existing output": (["forest.json", "office-b.csv", "-o", "test.csv"], 2, "--force"),
    "output is the table": (["forest.json", "office-b.csv", "-o", "office-b.csv", "--force"], 2, "also an input"),
    "unprintable owner": (["forest.json", "office-b.csv", "--owner", "b\x1b[2J"], 2, "owner"),
    "empty owner": (["forest.json", "office-b.csv", "--owner", ""], 2, "owner"),
}


@pytest.mark.parametrize("case", BAD_UPDATES)
def test_a_refused_update_leaves_every_file_as_it_was(case: str, planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    words, code, reason = BAD_UPDATES[case]
    if "dpdf.json" in words:
        run("fit", "office-a.csv", "--schema", "schema.toml", "--algorithm", "dpdf", "--depth", 2, "--epsilon", 1, "-o", "dpdf.json")
    before = files(planned.folder)
    refused(run("update", *words, "--budget", "budget.json"), code, reason)
    assert files(planned.folder) == before


def test_the_same_batch_is_added_once(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    words = ["update", "forest.json", "office-b.csv", "--batch", "february", "--budget", "budget.json"]
    done(run(*words))
    before = files(planned.folder)
    refused(run(*words), 2, "february")
    assert files(planned.folder) == before


def test_the_same_update_is_not_paid_twice_without_a_word(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """It was, unlike a fit, a score or a count."""
    words = ["update", "forest.json", "office-b.csv", "--budget", "budget.json"]
    done(run(*words, "--batch", "may", "-o", "u.json"))
    before = files(planned.folder)
    for epsilon in ((), ("--epsilon", "1/2")):
        result = run(*words, "--batch", "may", *epsilon, "-o", "u2.json")
        refused(result, 2, "budget.json has paid for this very update already (forest, DATA, ε, owner and batch: ε = 0.5 at 20")
        said = " ".join(result.stderr.split())
        assert "Nothing was spent. Use the forest that was saved then." in said
        assert "add --again" in said
    assert files(planned.folder) == before
    assert "counts" not in run("budget", "show", "budget.json").stdout
    done(run(*words, "--batch", "may", "-o", "u2.json", "--again"))
    done(run(*words, "--batch", "june", "-o", "u3.json"))  # other rows, as is stated
    done(run(*words, "--batch", "may", "--epsilon", "1/4", "-o", "u4.json"))
    done(run("update", "forest.json", "office-c.csv", "--batch", "may", "--epsilon", "1/4", "--budget", "budget.json", "-o", "u5.json"))
    assert BudgetFile(planned.budget).spent == 2


def test_of_two_updates_at_once_that_are_the_same_one_is_paid(planned: SimpleNamespace) -> None:
    racers, forest = [TrackedBudgetFile(planned.budget) for _ in range(3)], Release.load("forest.json")
    for budget, batch in zip(racers, ("may", "may", "june"), strict=True):
        budget.pay_for_update(["office-b.csv"], ["1/2", "", batch], forest, again=False)
    keys = [Counts(forest, "", None).key(budget, again=True) for budget in racers]
    racers[0].reserve_under(keys[0], 1, "count")
    with pytest.raises(BudgetError, match="paid for under the same key already"):
        racers[1].reserve_under(keys[1], 1, "count")
    racers[2].reserve_under(keys[2], 1, "count")
    assert BudgetFile(planned.budget).spent == 2


@pytest.mark.parametrize("batch", [(), ("--batch", "january")], ids=["random names", "declared names"])
def test_rows_of_a_forest_are_not_added_to_it(batch: tuple[str, ...], here: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Those of its fit, and those that were added since. Of a copy of the forest, too; not of others, whatever their batches are called."""
    words, pays = ["--schema", "schema.toml", *RDT[:-4], "--seed", 1], ["--epsilon", "1/8", "--budget", "budget.json"]
    for name in "ab":
        done(run("fit", f"office-{name}.csv", *words, *pays, *batch, "-o", f"{name}.json"))
    shutil.copy("a.json", "forest.json")
    more = ("--batch", "february") if batch else ()
    done(run("update", "forest.json", "office-b.csv", *pays, *more))
    done(run("update", "forest.json", "office-c.csv", *pays, *(("--batch", "march") if batch else ())))
    spent = BudgetFile(here.budget).spent
    for name, charge in (("a", "fit Private-RDT: ε"), ("b", "count Private-RDT"), ("c", "count Private-RDT")):
        result = run("update", "forest.json", f"office-{name}.csv", *pays, "--batch", "april")
        refused(result, 2, f"budget.json has paid for DATA in this forest already ({charge}")
        assert "Nothing was spent. Use the forest as it is." in " ".join(result.stderr.split())
        counted = run("count", "forest.json", f"office-{name}.csv", *pays, "--batch", "april", "-o", "counts.json")  # to be merged
        refused(counted, 2, "budget.json has paid for DATA in this forest already")
    assert BudgetFile(here.budget).spent == spent
    done(run("update", "b.json", "office-a.csv", *pays, "--batch", "april"))  # the other fit
    done(run("count", "forest.json", "office-a.csv", *pays, "--batch", "may", "-o", "counts.json", "--again"))
    done(run("update", "forest.json", "office-a.csv", *pays, "--batch", "april", "--again"))


@pytest.mark.parametrize("batch", [(), ("--batch", "february")], ids=["random names", "declared names"])
def test_rows_that_were_added_to_a_forest_flatter_its_score(
    batch: tuple[str, ...], planned: SimpleNamespace, run: Callable[..., Any]
) -> None:
    """Only rows of its own fit were refused."""
    done(run("update", "forest.json", "office-b.csv", *batch, "--epsilon", "1/4", "--budget", "budget.json", "-o", "more.json"))
    done(run("update", "more.json", "office-c.csv", "--epsilon", "1/4", "-o", "most.json", "--budget", "budget.json"))
    score, spent = ["office-b.csv", "--epsilon", "1/2", "--budget", "budget.json"], BudgetFile(planned.budget).spent
    for forest in ("more.json", "most.json"):
        result = run("evaluate", forest, *score)
        refused(result, 2, "budget.json has paid for counts of DATA itself in this forest (count Private-RDT of 'office a'")
        assert "Nothing was spent" in result.stderr
        assert "add --training-rows" in " ".join(result.stderr.split())
    assert BudgetFile(planned.budget).spent == spent
    done(run("evaluate", "forest.json", *score))  # without these rows
    done(run("evaluate", "more.json", *score, "--training-rows"))
    done(run("evaluate", "more.json", "office-c.csv", *score[1:]))


def test_rows_that_were_counted_and_merged_flatter_a_score(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    done(run("count", "plan.json", "office-b.csv", "-o", "b.json", "--budget", "budget.json"))
    done(run("count", "plan.json", "office-c.csv", "-o", "c.json"))
    for name, files_of in (("merged", ("forest.json", "b.json", "c.json")), ("others", ("forest.json", "c.json"))):
        done(run("merge", *files_of, "-o", f"{name}.json"))
    score = ["office-b.csv", "--epsilon", "1/4", "--budget", "budget.json"]
    for forest in ("b.json", "merged.json"):
        refused(run("evaluate", forest, *score), 2, "has paid for counts of DATA itself in this forest (count Private-RDT of 'b': ε = 0.5")
    done(run("evaluate", "others.json", *score))
    done(run("evaluate", "merged.json", *score, "--training-rows"))


def test_an_update_waits_for_no_other(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Of two at once, one batch would be paid for and lost."""
    before = files(planned.folder)
    with open("forest.json", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused(run("update", "forest.json", "office-b.csv", "--budget", "budget.json"), 2, "being changed by another command")
        assert files(planned.folder) == before
        done(run("update", "forest.json", "office-b.csv", "-o", "other.json"))  # it leaves the file alone
    done(run("update", "forest.json", "office-b.csv", "--budget", "budget.json"))


def test_ctrl_c_during_an_update_leaves_the_forest_as_it_was(
    planned: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableFile, "open", lambda *what: signal.raise_signal(signal.SIGINT))
    before = planned.forest.read_bytes()
    result = run("update", "forest.json", "office-b.csv", "--budget", "budget.json")
    assert result.exit_code == 130
    assert "interrupted. The forest is as it was. The charge of ε = 0.5 stays in budget.json" in result.stderr
    assert planned.forest.read_bytes() == before
    monkeypatch.undo()
    monkeypatch.chdir(planned.folder)
    refused(run("update", "forest.json", "office-b.csv", "--budget", "budget.json"), 2, "If it was not saved or is lost")
    done(run("update", "forest.json", "office-b.csv", "--budget", "budget.json", "--again"))
    assert (len(Release.load("forest.json").certificate.parts), BudgetFile(planned.budget).spent) == (2, 1)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where temporary files are made during the test."""
    folder = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("hedgerow.cli.fit.tempfile.tempdir", str(folder))
    return folder


def test_what_was_paid_for_is_kept_elsewhere(
    planned: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    save, failures = Release.save, ["No space left on device."]

    def fails_once(release: Release, path: Any) -> None:
        if failures:
            raise ReleaseError(failures.pop())
        save(release, path)

    monkeypatch.setattr(Release, "save", fails_once)
    before = files(planned.folder)
    result = run("update", "forest.json", "office-b.csv", "--budget", "budget.json")
    (kept,) = elsewhere.glob("hedgerow-*.json")
    assert "No space left on device" in result.stderr
    assert str(kept) in result.stderr
    assert planned.forest.read_bytes() == before["forest.json"]
    assert len(Release.load(kept).certificate.parts) == 2
    assert str(BudgetFile(planned.budget).spent) == "1/2"


@pytest.mark.parametrize("error", [MergeError, ReleaseError])
def test_counts_that_cannot_be_added_are_kept_elsewhere(
    error: Any, planned: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    def refuse(*what: Any, **more: Any) -> Any:
        raise error("its counts are too large to be added up.")

    monkeypatch.setattr("hedgerow.cli.update.add_batch", refuse, raising=False)
    monkeypatch.setattr("hedgerow.training.counting.add_batch", lambda before, batch, disjoint: refuse() if before else batch)
    before = planned.forest.read_bytes()
    result = run("update", "forest.json", "office-b.csv", "--budget", "budget.json")
    refused(result, 2, "too large to be added up")
    assert "ε = 0.5 stays in budget.json" in result.stderr
    assert planned.forest.read_bytes() == before
    (kept,) = elsewhere.glob("hedgerow-*.json")
    assert str(kept) in result.stderr
    assert [part.counted for part in Release.load(kept).certificate.parts] == [True, False]  # the new rows; those behind the trees


def test_a_forest_of_format_version_1_can_be_updated(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    shutil.copy(DATA / "release-v1.json", "old.json")
    Path("new.csv").write_text("colour,flag,age,shape,class\n" + "red,0,20,round,no\nblue,1,60,,yes\n" * 50)
    result = done(run("update", "old.json", "new.csv", "--batch", "new", "--disjoint"))
    assert "ε = 1 differential privacy" in result.stdout
    assert json.loads(Path("old.json").read_text())["version"] == 2
    assert len(Release.load("old.json").certificate.parts) == 2


def test_a_merge_of_two_plans_says_so(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    done(run("plan", "--schema", "schema.toml", *RDT[:-4], "--epsilon", "1", "--seed", 1, "--rows", 1800, "--save", "dearer.json"))
    for plan, name in (("plan.json", "a"), ("plan.json", "b"), ("dearer.json", "c")):
        done(run("count", plan, f"office-{name}.csv", "-o", f"{name}.json", "--disjoint"))
    said = done(run("merge", "a.json", "c.json", "-o", "merged.json")).stdout
    assert "2 plans, or batches with an ε of their own: ε = 0.5 and ε = 1. Their trees are the same" in said
    assert Release.load("merged.json").certificate.epsilon == "1"
    assert "2 plans" not in done(run("merge", "a.json", "b.json", "-o", "merged.json", "--force")).stdout


def test_rows_are_no_release(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """They said that JSON was malformed."""
    for command in (("merge", "office-a.csv", "a.json", "-o", "merged.json"), ("count", "office-a.csv", "office-b.csv", "-o", "b.json")):
        result = run(*command)
        refused(result, 2, "office-a.csv: it is no sound release or plan")
        assert "hedgerow count" in " ".join(result.stderr.split())


def test_a_first_batch_has_no_delta(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    """The message named what Python calls it, partial_fit."""
    result = run("fit", "office-a.csv", "--schema", "schema.toml", "--epsilon", 1, "--delta", "1e-6", "--batch", "may", "-o", "f.json")
    refused(result, 2, "--batch: delta is '1e-6'")
    assert "Leave --delta out" in " ".join(result.stderr.split())


def test_a_byte_order_mark_does_no_harm(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Some editors write one when they save a file that somebody only looked at."""
    for name in ("plan.json", "forest.json"):
        Path(name).write_bytes(b"\xef\xbb\xbf" + Path(name).read_bytes())
        done(run("verify", name))
    done(run("count", "plan.json", "office-b.csv", "-o", "b.json"))
    done(run("merge", "forest.json", "b.json", "-o", "merged.json"))


def test_what_an_update_states_is_not_called_a_merge(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    said = done(run("update", "forest.json", "office-b.csv", "--batch", "february", "--disjoint")).stdout
    assert "stated by its owner and by whoever added them up" in said
    assert "at a merge" not in said


def test_an_update_keeps_a_link_a_link(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Else the file that it points to, which others read, would stay as it was."""
    planned.forest.rename("real.json")
    os.symlink("real.json", "forest.json")
    done(run("update", "forest.json", "office-b.csv"))
    assert planned.forest.is_symlink()
    assert len(Release.load("real.json").certificate.parts) == 2


def test_an_update_never_saves_what_cannot_be_read(planned: SimpleNamespace, run: Callable[..., Any]) -> None:
    for i in range(6):
        run("update", "forest.json", "office-b.csv", "--epsilon", f"{10**44 + 1}/{10**44 + 1002 * i + 7}")
    done(run("show", "forest.json"))
