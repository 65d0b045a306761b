"""Rule sets from end to end on the command line: from a tree or a file to pseudo-data, and refusals that write nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow import Release, RuleSet
from hedgerow.anonymity.requirement import Requirement
from hedgerow.cli.keys import open_document
from hedgerow.sharing.measure import measure
from hedgerow.trees.paths import paths_of

Run = Callable[..., Any]
HAND_WRITTEN = [
    {"if": {"smoker": ["never", "former"], "age": {"high": 40}}, "counts": {"no": 300, "yes": 20}},
    {"if": {"smoker": ["never", "former"], "age": [{"low": 40}, "unknown"]}, "counts": {"no": 400, "yes": 30}},
    {"if": {"smoker": "current", "sex": "f"}, "counts": {"no": 9, "yes": 8}},
    {"if": {"smoker": "current", "sex": "m"}, "counts": {"no": 100, "yes": 90}},
]
CSV = """smoker,age,sex,ill=no,ill=yes
never|former,0 to 40,,300,20
never|former,40 to 100|unknown,,400,30
current,,f,9,8
current,,m,100,90
"""


@pytest.fixture
def written(place: SimpleNamespace) -> SimpleNamespace:
    """`place` with rules that somebody wrote by hand, in both forms: ages have cells of 10 years."""
    place.rules, place.csv, place.out = place.folder / "rules.json", place.folder / "rules.csv", place.folder / "shared.json"
    place.rules.write_text(json.dumps({"rules": HAND_WRITTEN, "bins": 10}))
    place.csv.write_text(CSV)
    return place


@pytest.fixture
def grown(place: SimpleNamespace, run: Run) -> SimpleNamespace:
    """`place` with a local tree, and its rules."""
    place.tree, place.rules, place.out = (place.folder / name for name in ("tree.json", "rules.json", "shared.json"))
    assert run("fit", place.data, "--schema", place.schema, "--algorithm", "local-tree", "-o", place.tree).exit_code == 0
    place.said = run("rules", place.tree, "--format", "rule-set", "-o", place.rules)
    assert place.said.exit_code == 0, place.said.output
    return place


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------- from a tree


def test_from_a_tree_to_pseudo_data(grown: SimpleNamespace, run: Run) -> None:
    rules, tree = RuleSet.load(grown.rules), Release.load(grown.tree)
    assert f"{len(rules)} rules" in grown.said.stdout
    assert "no privacy guarantee" in grown.said.stdout
    assert len(rules) == len(tree.forest.trees[0].leaves)
    result = run("anonymity", "check", grown.rules, "--schema", grown.schema, "-k", 50)
    assert (result.exit_code, result.stdout.split(maxsplit=1)[0]) == (1, "no:"), result.output
    assert "rules that fail" in result.stdout
    result = run("anonymity", "prune", grown.rules, "--schema", grown.schema, "-k", 30, "-c", 20, "-l", 2, "-o", grown.out)
    assert result.exit_code == 0, result.output
    for said in ("persons, fewer than 30", "NOT differential privacy", "homogeneity attack", "merges:"):
        assert said in result.stdout
    shared = RuleSet.load(grown.out)
    assert measure(shared.paths, Requirement.of(30, 20, 2)).satisfied
    assert (shared.certificate.guarantee, shared.certificate.epsilon) == ("anonymity", None)
    assert run("anonymity", "check", grown.out, "-k", 30, "-c", 20, "-l", 2).exit_code == 0
    again = grown.folder / "again.json"
    assert run("anonymity", "prune", grown.out, "-k", 30, "-c", 20, "-l", 2, "-o", again).exit_code == 0
    assert RuleSet.load(again).rules == shared.rules
    pseudo = grown.folder / "pseudo.csv"
    result = run("synth", grown.out, grown.tree, "-o", pseudo, "--seed", 1)
    assert result.exit_code == 0, result.output
    beside = json.loads((grown.folder / "pseudo.csv.certificate.json").read_text())
    assert [source["algorithm"] for source in beside["sources"]] == ["anonymity-pruned rule set", "local tree"]
    assert len(pseudo.read_text().splitlines()) == 1 + beside["rows"] == 1 + round(shared.paths.totals.sum()) + 2000


def test_rules_as_a_rule_set(grown: SimpleNamespace, fitted: SimpleNamespace, run: Run) -> None:
    printed = run("rules", grown.tree, "--format", "rule-set")
    assert printed.stdout == grown.rules.read_text()
    for words, says in (
        ([grown.tree, "--top", 3], "--top: a rule set has all paths"),
        ([grown.tree, "--class", "yes"], "--class: a rule set has all paths"),
        ([fitted.forest], "the counts are noisy"),
    ):
        before = files(grown.folder)
        result = run("rules", *words, "--format", "rule-set", "-o", grown.folder / "new.json")
        assert result.exit_code == 2
        assert says in result.stderr
        assert files(grown.folder) == before
    result = run("rules", grown.tree, "--format", "rule-set", "-o", grown.folder / "new.csv")
    assert (result.exit_code, (grown.folder / "new.csv").exists()) == (2, False)
    people = grown.folder / "people.json"
    assert run("rules", grown.tree, "-o", people).exit_code == 0
    assert "--format rule-set" in run("anonymity", "check", people, "--schema", grown.schema, "-k", 5).stderr


# ---------------------------------------------------------------- from a file


def test_from_a_file_to_pseudo_data(written: SimpleNamespace, run: Run) -> None:
    made = []
    for file, more in ((written.rules, []), (written.csv, ["--bins", 10])):
        assert run("anonymity", "check", file, "--schema", written.schema, "-k", 17, *more).exit_code == 0
        result = run("anonymity", "check", file, "--schema", written.schema, "-k", 50, *more)
        assert result.exit_code == 1
        assert "1 of 4 rules" in result.stdout
        result = run("anonymity", "prune", file, "--schema", written.schema, "-k", 50, *more, "-o", written.out, "--force")
        assert result.exit_code == 0, result.output
        assert "3 rules of 4" in result.stdout
        made.append(written.out.read_bytes())
    assert made[0] == made[1]
    result = run("synth", written.out, "-o", written.folder / "pseudo.csv", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert "957 pseudo-rows, method pgen" in result.stdout
    assert "ε" not in result.stdout
    plain = run("synth", written.csv, "--schema", written.schema, "--bins", 10, "-o", written.folder / "plain.csv")
    assert plain.exit_code == 0, plain.output
    assert "no privacy guarantee" in plain.stdout


def test_hits(written: SimpleNamespace, run: Run) -> None:
    assert run("anonymity", "prune", written.rules, "--schema", written.schema, "-k", 50, "--hits", "-o", written.out).exit_code == 0
    assert RuleSet.load(written.out).paths.counts is None
    twice = written.folder / "twice.json"
    assert run("anonymity", "prune", written.out, "-k", 60, "-o", twice).exit_code == 0
    assert "by its hit and miss" in RuleSet.load(twice).certificate.sentence()
    assert "hit and miss alone" in run("show", twice).stdout


def test_what_is_left_out_is_said(written: SimpleNamespace, run: Run) -> None:
    alone = [HAND_WRITTEN[0], {"if": {"smoker": "current", "sex": "f"}, "counts": {"no": 3, "yes": 4}}]
    written.rules.write_text(json.dumps({"rules": alone, "bins": 10}))
    result = run("anonymity", "prune", written.rules, "--schema", written.schema, "-k", 50, "-o", written.out)
    assert result.exit_code == 0, result.output
    assert "left out: 1 rules with 7 persons" in result.stdout
    assert len(RuleSet.load(written.out)) == 1


def test_the_empty_rule_set_is_not_saved(written: SimpleNamespace, run: Run) -> None:
    written.out.write_text("mine")
    before = files(written.folder)
    result = run("anonymity", "prune", written.rules, "--schema", written.schema, "-k", 5000, "-o", written.out, "--force")
    assert result.exit_code == 1
    assert "the empty rule set" in result.stdout
    assert files(written.folder) == before


def test_signed_shown_and_verified(written: SimpleNamespace, run: Run) -> None:
    key = written.folder / "me.key"
    assert run("key", "new", key).exit_code == 0
    words = ["anonymity", "prune", written.rules, "--schema", written.schema, "-k", 50, "-o", written.out, "--sign", key]
    assert run(*words).exit_code == 0
    assert run("verify", written.out, "--trust", f"{key}.pub").exit_code == 0
    assert run("sign", written.out, "--key", key).exit_code == 0
    shown = run("show", written.out)
    assert shown.exit_code == 0, shown.output
    for said in ("anonymity-pruned rule set", "smoker = current", "smallest path", "NOT differential privacy", "signed by"):
        assert said in shown.stdout
    for words, says in (
        (["show", written.out, "--tree", 1], "--tree: "),
        (["predict", written.out, written.test, "-o", written.folder / "p.csv"], "it is a rule set, not a forest"),
        (["merge", written.out, written.out, "-o", written.folder / "m.json"], "it is a rule set, not a forest"),
        (
            ["count", written.out, written.data, "--epsilon", 1, "--budget", written.budget, "-o", written.folder / "c.json"],
            "is a rule set",
        ),
    ):
        before = files(written.folder)
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert says in result.stderr
        assert files(written.folder) == before


# ---------------------------------------------------------------- refusals


def rule(conditions: Any, **more: Any) -> dict[str, Any]:
    return {"if": conditions, **({"counts": {"no": 30, "yes": 30}} | more)}


BAD: dict[str, tuple[Any, str]] = {
    "an unknown attribute": (
        [rule({"smokes": "never"})],
        "rule 1: 'smokes' is no attribute of the schema; expected one of smoker, age, sex",
    ),
    "an unknown value": ([rule({"smoker": "often"})], "'often' is no value of 'smoker'; expected one of never, former, current"),
    "upside down": ([rule({"age": {"low": 60, "high": 20}})], "'age' from 60 to 20; expected low below high"),
    "inside a cell": ([rule({"age": {"low": 33}})], "nearest edges are 30 and 40"),
    "no whole number": ([rule({}, counts={"no": 2.5, "yes": 1})], "persons of class 'no': got 2.5; expected a whole number"),
    "no such class": ([rule({}, counts={"no": 2, "perhaps": 1})], "'perhaps' is no class"),
    "overlap": ([rule({"smoker": "never"}), rule({"sex": "f"})], "rules 1 and 2 overlap"),
    "no rules": ([], "expected a list of 1 to"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["check", "prune", "synth"])
def test_bad_rules_write_nothing(command: str, case: str, written: SimpleNamespace, run: Run) -> None:
    rules, says = BAD[case]
    written.rules.write_text(json.dumps({"rules": rules, "bins": 10}))
    before = files(written.folder)
    words = {
        "check": ["anonymity", "check", written.rules, "-k", 5],
        "prune": ["anonymity", "prune", written.rules, "-k", 5, "-o", written.out],
        "synth": ["synth", written.rules, "-o", written.folder / "pseudo.csv"],
    }[command]
    result = run(*words, "--schema", written.schema)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert files(written.folder) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rules.json", "-k", 5], "expected their schema, too. Give --schema schema.toml"),
        (["rules.csv", "-k", 5], "expected their schema, too"),
        (["rules.csv", "-k", 5, "--schema", "schema.toml", "--bins", 7], "nearest edges are 28.5714 and 42.8571"),
        (["rules.json", "-k", 5, "--schema", "schema.toml", "--bins", 7], "bins: got 7; the file itself says 10"),
        (["rules.json", "-k", 5, "--schema", "data.csv"], "data.csv"),
        (["rules.json", "--schema", "schema.toml"], "give k"),
        (["rules.json", "--schema", "schema.toml", "-k", 5, "--siblings", "all"], "rules have no siblings"),
        (["absent.csv", "-k", 5, "--schema", "schema.toml"], "cannot be read"),
    ],
)
def test_refusals(words: list[Any], says: str, written: SimpleNamespace, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written.folder)
    before = files(written.folder)
    result = run("anonymity", "prune", *words, "-o", "shared.json")
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert files(written.folder) == before


def test_inputs_are_never_overwritten(written: SimpleNamespace, run: Run) -> None:
    before = files(written.folder)
    for path in (written.rules, written.schema):
        result = run("anonymity", "prune", written.rules, "--schema", written.schema, "-k", 5, "-o", path, "--force")
        assert result.exit_code == 2
        assert "also an input" in result.stderr
    assert files(written.folder) == before


def test_a_schema_that_was_read_from_rows_is_not_shared(written: SimpleNamespace, run: Run) -> None:
    written.schema.write_text(written.schema.read_text().replace('kind = "numeric"', 'kind = "numeric"\nunreviewed = true'))
    result = run("anonymity", "prune", written.rules, "--schema", written.schema, "-k", 5, "-o", written.out)
    assert result.exit_code == 2
    assert "read from the rows" in result.stderr
    assert not written.out.exists()


# ---------------------------------------------------------------- share


def test_share_with_rules(place: SimpleNamespace, run: Run) -> None:
    out = place.folder / "out"
    words = ["share", place.data, place.test, "--schema", place.schema, "-o", out, "--local", "rules"]
    result = run(*words, "-k", 30)
    assert result.exit_code == 0, result.output
    assert "wrote" in result.stdout
    assert "2 rule sets" in result.stdout
    for name in ("data.json", "test.json"):
        shared = RuleSet.load(out / name)
        assert measure(shared.paths, Requirement.of(30)).satisfied
        assert shared.certificate.guarantee == "anonymity"
    assert (out / "pseudo.csv").exists()


@pytest.mark.parametrize("form", ["rules", "csv"])
def test_share_with_an_owner_who_has_rules_alone(form: str, written: SimpleNamespace, run: Run) -> None:
    out = written.folder / "out"
    words = ["share", written.data, "--schema", written.schema, "--rules", getattr(written, form), "-o", out]
    result = run(*words, "-k", 30, *(["--bins", 10] if form == "csv" else []), "--test", written.test)
    assert result.exit_code == 0, result.output
    assert "1 tree and 1 rule set" in result.stdout
    shared = RuleSet.load(out / "rules.json")
    assert len(shared) == 3, "two of four rules were merged: one had 17 persons"
    assert measure(shared.paths, Requirement.of(30)).satisfied
    local = Release.load(out / "data.json")
    pseudo_rows = len((out / "pseudo.csv").read_text().splitlines()) - 1
    assert pseudo_rows == shared.paths.totals.sum() + local.forest.counts[0].sum()
    assert (out / "comparison.svg").exists()


@pytest.mark.parametrize("case", BAD)
def test_share_with_bad_rules_writes_nothing(case: str, written: SimpleNamespace, run: Run) -> None:
    rules, says = BAD[case]
    written.rules.write_text(json.dumps({"rules": rules, "bins": 10}))
    out = written.folder / "out"
    result = run("share", written.data, "--schema", written.schema, "--rules", written.rules, "-k", 30, "-o", out)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert not out.exists()


def test_share_says_what_to_change_where_nothing_is_left(written: SimpleNamespace, run: Run) -> None:
    words = ["share", written.data, "--schema", written.schema, "--rules", written.rules, "-k", 100_000, "-o", written.folder / "out"]
    result = run(*words)
    said = " ".join(result.output.split())
    assert result.exit_code == 2
    assert "data shares nothing. All persons together do not satisfy 100000-anonymity" in said
    assert "rules shares nothing. No rule with a condition satisfies it" in said
    assert not (written.folder / "out").exists(), "no tree, no pseudo-data"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--local", "forest"], "--local: got 'forest'; expected one of tree, rules"),
        (["--local", "rules", "--siblings", "all"], "rules have no siblings"),
    ],
)
def test_share_refuses_before_anything_is_made(more: list[str], says: str, place: SimpleNamespace, run: Run) -> None:
    result = run("share", place.data, place.test, "--schema", place.schema, "-k", 30, "-o", place.folder / "out", *more)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (place.folder / "out").exists()


@pytest.mark.parametrize("local", ["tree", "rules"])
def test_share_counts_persons_where_the_schema_names_them(local: str, place: SimpleNamespace, run: Run) -> None:
    """2,000 rows of 500 persons: what is shared counts 500 at most, and each path at least k of them."""
    header, *lines = place.data.read_text().splitlines()
    place.data.write_text("\n".join([f"id,{header}", *(f"p{number // 4},{line}" for number, line in enumerate(lines))]) + "\n")
    place.schema.write_text('person = "id"\n' + place.schema.read_text())
    words = ["share", place.data, "--schema", place.schema, "-k", 50, "--local", local, "--test", place.test, "-o", place.folder / "out"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    checked = run("anonymity", "check", place.folder / "out" / "data.json", "-k", 50)
    assert checked.exit_code == 0, checked.output
    shared = open_document(place.folder / "out" / "data.json")
    assert isinstance(shared, (Release, RuleSet))
    counts = (shared.paths if isinstance(shared, RuleSet) else paths_of(shared.forest)).totals
    assert min(counts) >= 50
    assert sum(counts) <= 500


def test_share_refuses_several_rows_of_a_person(place: SimpleNamespace, run: Run) -> None:
    place.schema.write_text('person = "id"\nrows_per_person = 2\n' + place.schema.read_text())
    result = run("share", place.data, "--schema", place.schema, "-k", 50, "-o", place.folder / "out")
    assert (result.exit_code, "Set rows_per_person = 1" in " ".join(result.stderr.split())) == (2, True), result.output
    assert not (place.folder / "out").exists()
