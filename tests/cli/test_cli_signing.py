"""`hedgerow merge`, `key`, `sign`, `verify` and `demo --tables`: what owners send each other, and what is believed of it."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hedgerow import BudgetFile, Release
from hedgerow.release.document import Document
from hedgerow.release.files import with_hash
from hedgerow.release.public_plan import PlanDocument

PLAN = ["plan", "--schema", "schema.toml", "--algorithm", "rdt", "--trees", 4, "--depth", 2, "--rows", 1800]
OFFICES = ["office-a.json", "office-b.json", "office-c.json"]
ESCAPE = "\x1b[2J\x07\x9b"
BUILT: list[Path] = []  # the offices are made once; the tests get copies


def done(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return result


def refused(result: Any, words: str, code: int = 2) -> None:
    """One message with the reason, and no traceback."""
    assert result.exit_code == code, result.output
    assert "error: " in result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output


@pytest.fixture
def here(
    place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> SimpleNamespace:
    """Three offices with a key and a budget each, a signed plan, and in `counted` what each counted, signed and stated to be disjoint."""
    monkeypatch.chdir(place.folder)
    if BUILT:
        shutil.copytree(BUILT[0], place.folder, dirs_exist_ok=True)
        return place
    head, *rows = place.data.read_text().splitlines(keepends=True)
    Path("keys").mkdir()
    Path("counted").mkdir()
    for name in "abc":
        done(run("key", "new", f"{name}.key", "--name", f"Office {name.upper()}"))
        shutil.copy(f"{name}.key.pub", "keys")
    done(run(*PLAN, "--epsilon", "0.5", "--seed", 1, "--owners", 3, "--save", "plan.json", "--sign", "a.key"))
    for i, name in enumerate("abc"):
        Path(f"office-{name}.csv").write_text(head + "".join(rows[600 * i : 600 * (i + 1)]))
        BudgetFile.create(f"budget-{name}.json", 1)
        words = ["-o", f"counted/office-{name}.json", "--budget", f"budget-{name}.json", "--sign", f"{name}.key", "--disjoint"]
        done(run("count", "plan.json", f"office-{name}.csv", "--owner", f"office-{name}", *words))
    BUILT.append(shutil.copytree(place.folder, tmp_path_factory.mktemp("offices"), dirs_exist_ok=True))
    return place


@pytest.fixture
def offices(here: SimpleNamespace) -> SimpleNamespace:
    """`here` with the counts in its folder."""
    shutil.copytree("counted", ".", dirs_exist_ok=True)
    return here


def altered(source: str, target: str, change: Callable[[dict[str, Any]], Any], signatures: bool = False) -> None:
    """A document as somebody makes it who wants to be believed: changed, and its hash made anew."""
    plain = json.loads(Path(source).read_text())
    change(plain)
    if not signatures:
        plain["signatures"] = []
    kind: Any = PlanDocument if plain["format"] == "hedgerow-plan" else Document
    Path(target).write_bytes(msgspec.json.encode(with_hash(msgspec.convert(plain, type=kind))))


# ---------------------------------------------------------------- three offices


def test_three_offices_from_counts_to_predictions(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    merged = done(run("merge", *OFFICES, "--trust", "keys", "--require-signed")).stdout
    for words in ("saved merged.json", "ε = 0.5 differential privacy", "counted tables: 3", "stated by its owner", "rebuilding: "):
        assert words in merged
    for name in "ABC":
        assert f"Office {name}" in merged
    assert "not trusted" not in merged
    shown = done(run("show", "merged.json")).stdout
    for words in ("counted tables: 3", "office-a", "office-b", "office-c", "Tree 1 of 4"):
        assert words in shown
    certificate = " ".join(done(run("show", "merged.json", "--certificate")).stdout.split())  # long lines are folded
    stated = "each owner states that no person has rows in two of these tables: office-a ("
    for words in ("one person", "the largest ε of the tables counts", stated, "key SHA256:"):
        assert words in certificate
    done(run("show", "merged.json", "--report", "report.html"))
    assert "office-b" in Path("report.html").read_text()
    assert len(done(run("predict", "merged.json", "test.csv")).stdout.splitlines()) == 501
    assert "accuracy" in done(run("evaluate", "merged.json", "test.csv", "--epsilon", 1, "--budget", "budget.json")).stdout
    assert done(run("rules", "merged.json", "--top", 3)).stdout.startswith("1. If ")
    for name in "abc":
        (entry,) = BudgetFile(f"budget-{name}.json").entries
        assert str(entry.cost) == "1/2"  # a merge costs nothing


def test_neither_order_nor_grouping_matters_and_one_can_be_left_out(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    def content(name: str) -> str:
        text: str = done(run("show", name)).stdout
        return text.split("content hash")[1].split()[0]

    done(run("merge", *OFFICES))
    done(run("merge", *reversed(OFFICES), "-o", "reversed.json"))
    done(run("merge", *OFFICES[:2], "-o", "two.json"))
    done(run("merge", OFFICES[2], "two.json", "-o", "grouped.json"))
    assert content("merged.json") == content("reversed.json") == content("grouped.json") != content("two.json")
    assert [part.owner for part in Release.load("two.json").certificate.parts] == ["office-a", "office-b"]
    assert "office-c" not in run("show", "two.json", "--certificate").stdout


def test_without_a_statement_the_losses_add(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    for name in "abc":
        done(run("count", "plan.json", f"office-{name}.csv", "-o", f"office-{name}.json"))
    added = done(run("merge", *OFFICES, "-o", "added.json")).stdout
    assert "ε = 1.5 differential privacy" in added
    assert "not stated" in added
    assert "the ε of the tables add up" in run("show", "added.json", "--certificate").stdout
    stated = done(run("merge", *OFFICES, "-o", "stated.json", "--disjoint")).stdout
    assert "ε = 0.5 differential privacy" in stated
    assert "stated by whoever added them up" in stated
    text = run("show", "stated.json", "--certificate").stdout
    assert "whoever merged (statement " in text
    assert "owner states" not in text


def test_a_merge_can_be_signed_and_checked(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    done(run("merge", *OFFICES, "--sign", "b.key"))
    checked = done(run("verify", "merged.json", "--trust", "b.key.pub"))
    assert "signed by: Office B" in checked.stdout
    assert "ε = 0.5 differential privacy" in checked.stdout
    assert run("verify", "merged.json", "--trust", "a.key.pub").exit_code == 1  # it signed a part of it only
    updated = done(run("update", "merged.json", "test.csv", "--batch", "later", "--disjoint"))
    assert "the new one is not" in updated.stdout
    assert "signed by: nobody" in done(run("verify", "merged.json")).stdout
    done(run("update", "merged.json", "data.csv", "--batch", "again", "--disjoint", "--sign", "c.key"))
    assert "signed by: Office C" in done(run("verify", "merged.json", "--trust", "keys")).stdout


# ---------------------------------------------------------------- what is not merged

BAD_MERGES = {
    "a plan": (["office-a.json", "plan.json"], "plan.json: it is a plan"),
    "another seed": (["office-a.json", "other.json"], "the structure of"),
    "another number of trees": (["office-a.json", "fewer.json"], "--trees: 4 and 3"),
    "the same file twice": (["office-a.json", "office-b.json", "office-a.json"], "cannot be counted twice"),
    "a copy of a file": (["office-a.json", "copy.json"], "cannot be counted twice"),
    "a copy under another name": (["office-a.json", "renamed.json"], "a copy under another name"),
    "the same owner twice": (["office-a.json", "again.json"], "add --batches"),
    "a batch twice": (["office-a.json", "copy.json", "--batches"], "cannot be counted twice"),
    "altered counts": (["office-b.json", "damaged.json"], "content hash"),
    "altered after signing": (["office-b.json", "forged.json"], "changed after it was signed"),
    "an unknown signer": (["office-a.json", "office-b.json", "--trust", "a.key.pub", "--require-signed"], "office-b.json is signed by"),
    "nobody's signature": (["office-a.json", "renamed.json", "--trust", "keys", "--require-signed"], "renamed.json is signed by nobody"),
    "nobody to trust": (["office-a.json", "office-b.json", "--require-signed"], "--trust"),
    "a folder without keys": (["office-a.json", "office-b.json", "--trust", "empty"], "no public key"),
    "a private key to trust": (["office-a.json", "office-b.json", "--trust", "a.key"], "is a private key"),
    "no key to sign with": (["office-a.json", "office-b.json", "--sign", "a.key.pub"], "not an Ed25519 private key"),
    "columns that are disjoint": (["office-a.json", "office-b.json", "--columns", "--disjoint"], "Leave them out"),
    "the same columns": (["office-a.json", "office-b.json", "--columns"], "without --columns"),
    "garbage": (["office-a.json", "test.csv"], "test.csv"),
    "no such file": (["office-a.json", "absent.json"], "absent.json"),
    "output is an input": (["office-a.json", "office-b.json", "-o", "office-b.json", "--force"], "also an input"),
    "output exists": (["office-a.json", "office-b.json", "-o", "plan.json"], "--force"),
    "greedy trees": (["office-a.json", "dpdf.json"], "chosen by looking at its rows"),
}


@pytest.mark.parametrize("case", BAD_MERGES)
def test_a_refused_merge_says_why_and_writes_nothing(case: str, offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    words, reason = BAD_MERGES[case]
    Path("empty").mkdir()
    shutil.copy("office-a.json", "copy.json")

    def rename(plain: dict[str, Any]) -> None:
        plain["certificate"]["parts"][0] |= {"owner": "office-x", "id": "x"}

    def count_one_more(plain: dict[str, Any]) -> None:
        plain["trees"][0]["counts"][0] += 1

    altered("office-a.json", "renamed.json", rename)
    altered("office-a.json", "forged.json", count_one_more, signatures=True)
    plain = json.loads(Path("office-a.json").read_text())
    count_one_more(plain)
    Path("damaged.json").write_text(json.dumps(plain))
    count = ["office-b.csv", "--owner", "office-a", "-o"]
    if "other.json" in words:
        done(run(*PLAN, "--epsilon", "0.5", "--seed", 2, "--save", "plan-2.json"))
        done(run("count", "plan-2.json", *count, "other.json", "--owner", "x"))
    if "fewer.json" in words:
        done(run(*PLAN, "--trees", 3, "--epsilon", "0.5", "--seed", 1, "--save", "plan-3.json"))
        done(run("count", "plan-3.json", *count, "fewer.json", "--owner", "x"))
    if "again.json" in words:
        done(run("count", "plan.json", *count, "again.json"))
    if "dpdf.json" in words:
        done(run("fit", "test.csv", "--schema", "schema.toml", "--algorithm", "dpdf", "--depth", 2, "--epsilon", 1, "-o", "dpdf.json"))
    before = {path: path.read_bytes() for path in offices.folder.rglob("*") if path.is_file()}
    refused(run("merge", *words), reason)
    assert {path: path.read_bytes() for path in offices.folder.rglob("*") if path.is_file()} == before


def test_batches_of_one_owner(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    done(run("count", "plan.json", "test.csv", "--owner", "office-a", "--batch", "2026-03", "-o", "again.json"))
    shown = done(run("merge", "office-a.json", "again.json", "--batches")).stdout
    assert "2026-03" in shown
    assert "counted tables: 2" in shown


# ---------------------------------------------------------------- different columns

HALVES = {"registry": ("smoker", "sex"), "clinic": ("age",)}


@pytest.fixture
def united(place: SimpleNamespace, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A registry and a clinic that know different columns of the same persons, and what was merged of them."""
    monkeypatch.chdir(place.folder)
    target, *attributes = place.schema.read_text().split("[attributes.")
    for owner, columns in HALVES.items():
        kept = [text for text in attributes if text.partition("]")[0] in columns]
        Path(f"{owner}.toml").write_text(target + "".join("[attributes." + text for text in kept))
        table = [line.split(",") for line in place.data.read_text().splitlines()]
        places = [table[0].index(name) for name in (*columns, "ill")]
        Path(f"{owner}.csv").write_text("".join(",".join(row[i] for i in places) + "\n" for row in table))
        plan = ["--algorithm", "rdt", "--trees", 2, "--depth", 1, "--epsilon", "0.5", "--save", f"plan-{owner}.json"]
        done(run("plan", "--schema", f"{owner}.toml", *plan))
        done(run("count", f"plan-{owner}.json", f"{owner}.csv", "-o", f"{owner}.json"))
    place.said = done(run("merge", "--columns", "registry.json", "clinic.json", "-o", "united.json")).stdout
    return place


def test_owners_of_different_columns(united: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert "ε = 1 differential privacy" in united.said
    shown = done(run("show", "united.json")).stdout
    assert "counted tables: 2" in shown
    assert "smoker, sex" in next(line for line in shown.splitlines() if line.strip().startswith("registry"))
    assert next(line for line in shown.splitlines() if line.strip().startswith("clinic")).rstrip().endswith("age")
    assert "different columns of the same persons" in run("show", "united.json", "--certificate").stdout
    whole = done(run("predict", "united.json", "test.csv"))
    assert (len(whole.stdout.splitlines()), whole.stderr) == (501, "")
    half = done(run("predict", "united.json", "registry.csv", "--proba"))
    assert len(half.stdout.splitlines()) == 2001
    assert half.stderr.startswith("warning: ")
    assert "age" in half.stderr
    assert "nan" not in half.stdout
    Path("strange.csv").write_text("colour,ill\nred,no\n")
    refused(run("predict", "united.json", "strange.csv"), "smoker")
    assert "accuracy" in done(run("evaluate", "united.json", "test.csv", "--epsilon", 1, "--budget", "budget.json")).stdout
    refused(run("update", "united.json", "test.csv", "--budget", "budget.json"), "merge --columns")
    assert BudgetFile(united.budget).spent == 1
    done(run("show", "united.json", "--report", "report.html"))
    done(run("rules", "united.json"))


# ---------------------------------------------------------------- keys


def test_a_private_key_is_for_its_owner_alone(tmp_path: Path, run: Callable[..., Any]) -> None:
    path, public = tmp_path / "office.key", tmp_path / "office.key.pub"
    made = done(run("key", "new", path, "--name", "Office A")).stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public.read_text().startswith("ssh-ed25519 AAAA")
    assert public.read_text().endswith(" Office A\n")
    assert "SHA256:" in made
    assert "PRIVATE" not in made
    before = path.read_bytes(), public.read_bytes()
    refused(run("key", "new", path), "never replaced")
    public.unlink()
    refused(run("key", "new", path), "never replaced")
    assert (path.read_bytes(), public.exists()) == (before[0], False)  # no public half of a key that was not made
    refused(run("key", "new", tmp_path / "two.key", "--name", "two\nlines"), "one short line")
    refused(run("key", "new", tmp_path / "nowhere" / "k.key"), "cannot be written")
    assert sorted(tmp_path.iterdir()) == [path]


def test_signing_and_verifying(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    """In place or to another file; several may sign; a wrong key leaves with 1."""
    plain = json.loads(Path("office-a.json").read_text())
    done(run("sign", "office-a.json", "--key", "b.key", "-o", "both.json"))
    assert len(json.loads(Path("office-a.json").read_text())["signatures"]) == 1
    assert "signed by: Office A [a.key.pub], Office B [b.key.pub]" in done(run("verify", "both.json", "--trust", "keys")).stdout
    done(run("sign", "office-a.json", "--key", "a.key"))  # again: no second signature of the same key
    assert len(json.loads(Path("office-a.json").read_text())["signatures"]) == 1
    assert json.loads(Path("office-a.json").read_text())["content_hash"] == plain["content_hash"]
    done(run("verify", "office-a.json", "--trust", "a.key.pub"))
    wrong = run("verify", "office-a.json", "--trust", "b.key.pub", "--trust", "c.key.pub")
    assert wrong.exit_code == 1
    assert "none of the trusted keys has signed it" in wrong.stderr
    assert "signed by: key SHA256:" in done(run("verify", "office-a.json")).stdout
    refused(run("sign", "office-a.json", "--key", "b.key", "-o", "both.json"), "--force")
    refused(run("sign", "office-a.json", "--key", "b.key.pub"), "not an Ed25519 private key")
    refused(run("sign", "test.csv", "--key", "b.key"), "test.csv")
    refused(run("verify", "absent.json"), "absent.json")


def test_a_signed_plan(here: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert "signed by: Office A" in done(run("verify", "plan.json", "--trust", "a.key.pub")).stdout
    done(run("sign", "plan.json", "--key", "b.key"))
    both = done(run("verify", "plan.json", "--trust", "keys")).stdout
    assert "signed by: Office A [a.key.pub], Office B [b.key.pub]" in both
    assert "it holds no data" in both
    assert run("verify", "plan.json", "--trust", "c.key.pub").exit_code == 1
    altered("plan.json", "dear.json", lambda plain: plain.update(epsilon="5"), signatures=True)
    refused(run("verify", "dear.json"), "changed after it was signed")
    refused(run("count", "dear.json", "office-a.csv", "-o", "a.json", "--budget", "budget-a.json"), "changed after it was signed")
    assert str(BudgetFile("budget-a.json").spent) == "1/2"  # no more than before


# ---------------------------------------------------------------- names from elsewhere


def test_control_characters_of_others_are_never_printed(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    def write_everywhere(plain: dict[str, Any]) -> None:
        certificate = plain["certificate"]
        part = certificate["parts"][0]
        for record, name in ((plain, "made_by"), (part, "sampler"), (part, "problem")):
            record[name] += ESCAPE
        part["assumptions"].append(ESCAPE)
        part["signed_by"] = [ESCAPE, f"ssh-ed25519 {ESCAPE}"]
        certificate |= {"guarantee": "none", "epsilon": None, "reason": part["problem"], "assumptions": part["assumptions"]}
        plain["chosen"][ESCAPE] = plain["parameters"][ESCAPE] = ESCAPE
        plain["schema"]["target"]["classes"][1] += ESCAPE
        plain["schema"]["attributes"] = {name + ESCAPE: entry for name, entry in plain["schema"]["attributes"].items()}
        plain["ensembles"][0]["columns"] = list(plain["schema"]["attributes"])

    altered("office-a.json", "hostile.json", write_everywhere)
    altered("plan.json", "hostile-plan.json", lambda plain: plain.update(drawn_with=ESCAPE, seed=7, algorithm="Private-RDT"))
    altered("plan.json", "strange-plan.json", lambda plain: plain.update(algorithm=ESCAPE))
    Path("hostile.pub").write_text(Path("a.key.pub").read_text().strip() + ESCAPE + "\n")
    altered("office-b.json", "named.json", lambda plain: plain["certificate"]["parts"][0].update(owner="b" + ESCAPE))
    for code, *words in (
        (0, "show", "hostile.json"),
        (0, "show", "hostile.json", "--certificate"),
        (0, "show", "hostile.json", "--tree", 1),
        (0, "rules", "hostile.json"),
        (0, "verify", "hostile.json"),
        (0, "merge", "hostile.json"),
        (0, "verify", "office-a.json", "--trust", "hostile.pub"),
        (2, "verify", "hostile-plan.json"),
        (2, "merge", "office-b.json", "hostile.json", "-o", "other.json"),
        (2, "merge", "office-a.json", "named.json", "-o", "other.json"),
        (2, "predict", "hostile.json", "test.csv"),
        (2, "update", "hostile.json", "test.csv"),
        (2, "count", "strange-plan.json", "test.csv", "-o", "other.json"),
    ):
        result = run(*words)
        assert result.exit_code == code, (words, result.output)
        assert not set(ESCAPE[:1] + ESCAPE[-2:]) & set(result.output), words
    assert not Path("other.json").exists()


def test_no_text_of_others_makes_a_line_of_its_own(offices: SimpleNamespace, run: Callable[..., Any]) -> None:
    """Else a file that claims nothing could print a guarantee."""

    def forge(plain: dict[str, Any]) -> None:
        claim = "nothing\nguarantee: ε = 0.001 differential privacy"
        plain["certificate"] |= {"guarantee": "none", "epsilon": None, "reason": claim}
        plain["certificate"]["parts"][0]["problem"] = claim

    altered("office-a.json", "forged.json", forge)
    for words in (["verify", "forged.json"], ["show", "forged.json"], ["show", "forged.json", "--certificate"]):
        lines = run(*words).stdout.splitlines()
        assert not [line for line in lines if line.startswith("guarantee: ε")], words


# ---------------------------------------------------------------- tables to try this with


def test_the_demo_writes_tables_of_several_owners(tmp_path: Path, run: Callable[..., Any]) -> None:
    folder = tmp_path / "tables"
    said = done(run("demo", "--tables", folder, "--rows", 200)).stdout
    names = {"office-a", "office-b", "office-c", "new-batch", "test", "registry", "clinic"}
    assert {path.stem for path in folder.glob("*.csv")} == names
    assert {path.stem for path in folder.glob("*.toml")} == {"schema", "registry", "clinic"}
    assert all(name in said for name in names)
    assert len((folder / "office-a.csv").read_text().splitlines()) == len((folder / "clinic.csv").read_text().splitlines()) == 101
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused(run("demo", "--tables", folder, "--rows", 300), "exists already")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    done(run("plan", "--schema", folder / "schema.toml", "--epsilon", 1, "--rows", 300, "--save", tmp_path / "plan.json"))
    done(run("count", tmp_path / "plan.json", folder / "office-b.csv", "-o", tmp_path / "b.json"))


def test_the_demo_keeps_a_schema_that_is_there(tmp_path: Path, run: Callable[..., Any]) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text("# mine, reviewed for a week\n")
    refused(run("demo", "--tables", tmp_path, "--rows", 200), "exists already")
    assert schema.read_text() == "# mine, reviewed for a week\n"
    assert list(tmp_path.iterdir()) == [schema]
