"""`hedgerow anonymity check` and `prune`: the answer first, exit codes, and what is never saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedgerow import Release
from hedgerow.anonymity.requirement import Requirement
from hedgerow.release.certificate import no_certificate
from hedgerow.schema.attributes import Categorical, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.measure import measure
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.paths import paths_of
from hedgerow.trees.tree import TreeBuilder

Run = Callable[..., Any]


@pytest.fixture
def grown(place: SimpleNamespace, run: Run) -> SimpleNamespace:
    """`place` with a local tree."""
    place.tree, place.out = place.folder / "tree.json", place.folder / "shared.json"
    result = run("fit", place.data, "--schema", place.schema, "--algorithm", "local-tree", "-o", place.tree)
    assert result.exit_code == 0, result.output
    return place


def saved(counts: Any, path: Path, trees: int = 1) -> Path:
    """Exact trees with one question and these counts."""
    counts = np.array(counts, dtype=np.int64)
    codebook = Codebook(
        Schema([Categorical("a", [f"a{i}" for i in range(len(counts))])], Target("t", [f"c{i}" for i in range(counts.shape[1])]))
    )
    builder = TreeBuilder(codebook.sizes)
    builder.split(0, 0)
    forest = CountedForest(codebook, (builder.build(),) * trees, (counts,) * trees)
    Release(forest, no_certificate("a test"), algorithm="local tree", vote="summed counts", parameters={}, chosen={}).save(path)
    return path


def first_word(result: Any) -> str:
    return str(result.stdout).split(maxsplit=1)[0]


# ---------------------------------------------------------------- check


def test_check_says_yes_first(grown: SimpleNamespace, run: Run) -> None:
    result = run("anonymity", "check", grown.tree, "-k", 1)
    assert (result.exit_code, first_word(result)) == (0, "yes:"), result.output
    assert "paths that fail" not in result.stdout
    assert "not differential privacy" in result.stdout


def test_check_says_no_first_and_why(grown: SimpleNamespace, run: Run) -> None:
    result = run("anonymity", "check", grown.tree, "-k", 5)
    assert (result.exit_code, first_word(result)) == (1, "no:"), result.output
    assert "5-anonymity" in result.stdout.splitlines()[0]
    assert "persons, fewer than 5" in result.stdout


def test_check_agrees_with_the_paths(grown: SimpleNamespace, run: Run) -> None:
    paths = paths_of(Release.load(grown.tree).forest)
    for words, given in (
        (["-c", "20", "-l", 2], {"c": 20, "l": 2}),
        (["--c", "30", "--l", 2], {"c": 30, "l": 2}),
        (["-k", 1, "--alpha", "0.96"], {"k": 1, "alpha": "0.96"}),
        (["-k", 1, "--alpha", "0.9"], {"k": 1, "alpha": "0.9"}),
        (["-k", 4, "-c", "100", "-l", 2], {"k": 4, "c": 100, "l": 2}),
    ):
        good = measure(paths, Requirement.of(**given)).satisfied
        result = run("anonymity", "check", grown.tree, *words)
        assert (result.exit_code, first_word(result)) == ((0, "yes:") if good else (1, "no:")), result.output


def test_check_by_hits(tmp_path: Path, run: Run) -> None:
    tree = saved([[14, 6, 0], [14, 3, 3]], tmp_path / "tree.json")
    assert run("anonymity", "check", tree, "-c", 5, "-l", 3, "--hits").exit_code == 0
    result = run("anonymity", "check", tree, "-c", 5, "-l", 3)
    assert result.exit_code == 1
    assert "1 of 2 paths" in result.stdout.splitlines()[0]
    assert "none is enough" in result.stdout  # no c makes 14, 6, 0 diverse for l = 3


def test_check_lists_no_more_than_some(tmp_path: Path, run: Run) -> None:
    tree = saved([[1, 1]] * 30, tmp_path / "tree.json")
    result = run("anonymity", "check", tree, "-k", 5)
    assert "30 of 30 paths" in result.stdout
    assert "and 10 more" in result.stdout


def test_check_of_several_trees_warns(tmp_path: Path, run: Run) -> None:
    tree = saved([[9, 9], [9, 9]], tmp_path / "tree.json", trees=3)
    result = run("anonymity", "check", tree, "-k", 5)
    assert (result.exit_code, first_word(result)) == (0, "yes:")
    assert "several trees about the same persons tell more together" in result.stdout


# ---------------------------------------------------------------- prune


def test_prune_saves_what_may_be_shared(grown: SimpleNamespace, run: Run) -> None:
    result = run("anonymity", "prune", grown.tree, "-k", 30, "-c", 20, "-l", 2, "-o", grown.out)
    assert result.exit_code == 0, result.output
    release = Release.load(grown.out)
    assert measure(paths_of(release.forest), Requirement.of(30, 20, 2)).satisfied
    assert release.certificate.guarantee == "anonymity"
    assert release.certificate.epsilon is None
    assert release.forest.counts[0].sum() == 2000
    assert "persons, fewer than 30" in result.stdout  # every merge is explained
    assert "NOT differential privacy" in result.stdout
    assert "homogeneity attack" in result.stdout
    assert run("anonymity", "check", grown.out, "-k", 30, "-c", 20, "-l", 2).exit_code == 0
    again = grown.folder / "again.json"
    assert run("anonymity", "prune", grown.out, "-k", 30, "-c", 20, "-l", 2, "-o", again).exit_code == 0
    assert Release.load(again).forest.trees == release.forest.trees
    assert "anonymity, NOT differential privacy" in run("show", grown.out).stdout
    assert run("predict", grown.out, grown.test, "-o", grown.folder / "p.csv").exit_code == 0


def test_siblings(grown: SimpleNamespace, run: Run) -> None:
    leaves = {}
    for mode in ("needed", "all"):
        result = run("anonymity", "prune", grown.tree, "-k", 30, "--siblings", mode, "-o", grown.out, "--force")
        assert result.exit_code == 0, result.output
        leaves[mode] = len(Release.load(grown.out).forest.trees[0].leaves)
    assert leaves["needed"] >= leaves["all"]
    result = run("anonymity", "prune", grown.tree, "-k", 30, "--siblings", "some", "-o", grown.folder / "x.json")
    assert result.exit_code == 2
    assert "siblings: got 'some'" in result.stderr


def test_the_empty_tree_is_not_saved(grown: SimpleNamespace, run: Run) -> None:
    for more in ([], ["--siblings", "all"], ["--hits"]):
        result = run("anonymity", "prune", grown.tree, "-k", 3000, "-o", grown.out, *more)
        assert result.exit_code == 1
        assert "the empty tree" in result.stdout
        assert not grown.out.exists()


def test_the_empty_tree_does_not_replace_a_file(grown: SimpleNamespace, run: Run) -> None:
    grown.out.write_text("mine")
    result = run("anonymity", "prune", grown.tree, "-k", 3000, "-o", grown.out, "--force")
    assert result.exit_code == 1
    assert grown.out.read_text() == "mine"


def test_prune_by_hits(tmp_path: Path, run: Run) -> None:
    tree, out = saved([[14, 6, 0], [3, 19, 5]], tmp_path / "tree.json"), tmp_path / "out.json"
    result = run("anonymity", "prune", tree, "-c", 5, "-l", 3, "--hits", "-o", out)
    assert result.exit_code == 0, result.output
    release = Release.load(out)
    assert release.forest.counts[0].tolist() == [[14, 3, 3], [4, 19, 4]]
    assert any("only hit and miss" in said for said in release.certificate.assumptions)


def test_what_prune_saves_can_be_opened(tmp_path: Path, run: Run) -> None:
    tree, out = saved([[17, 4, 3], [17, 7, 0]], tmp_path / "tree.json"), tmp_path / "out.json"
    result = run("anonymity", "prune", tree, "-c", 5, "-l", 3, "--hits", "-o", out)
    assert (result.exit_code == 0) == out.exists()
    assert not out.exists() or run("show", out).exit_code == 0


def test_a_signed_tree(grown: SimpleNamespace, run: Run) -> None:
    key = grown.folder / "me.key"
    made = run("key", "new", key)
    assert made.exit_code == 0, made.output
    result = run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.out, "--sign", key)
    assert result.exit_code == 0, result.output
    assert len(Release.load(grown.out).signatures) == 1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("command", ["check", "prune"])
def test_a_noisy_release_is_refused(command: str, fitted: SimpleNamespace, run: Run) -> None:
    out = fitted.folder / "out.json"
    result = run("anonymity", command, fitted.forest, "-k", 5, *(["-o", out] if command == "prune" else []))
    assert result.exit_code == 2
    assert "noisy counts" in result.stderr
    assert not out.exists()


def test_several_trees_are_not_pruned(tmp_path: Path, run: Run) -> None:
    tree, out = saved([[9, 9], [9, 9]], tmp_path / "tree.json", trees=2), tmp_path / "out.json"
    result = run("anonymity", "prune", tree, "-k", 5, "-o", out)
    assert result.exit_code == 2
    assert "got 2 trees" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give k"),
        (["-k", "0"], "k: got 0"),
        (["-c", "5"], "needs both"),
        (["-l", "2"], "needs both"),
        (["-c", "5", "-l", "1"], "l: got 1"),
        (["-c", "5", "-l", "3"], "the target has 2 classes"),
        (["-c", "x", "-l", "2"], "c: got 'x'"),
        (["--alpha", "0.5"], "needs k"),
        (["-k", "5", "--alpha", "1"], "alpha: got '1'"),
    ],
)
@pytest.mark.parametrize("command", ["check", "prune"])
def test_bad_requirements(command: str, words: list[str], says: str, tmp_path: Path, run: Run) -> None:
    tree, out = saved([[9, 9], [9, 9]], tmp_path / "tree.json"), tmp_path / "out.json"
    result = run("anonymity", command, tree, *words, *(["-o", out] if command == "prune" else []))
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert not out.exists()


def test_an_output_that_exists_is_kept(grown: SimpleNamespace, run: Run) -> None:
    grown.out.write_text("mine")
    result = run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.out)
    assert result.exit_code == 2
    assert grown.out.read_text() == "mine"
    assert run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.out, "--force").exit_code == 0
    before = grown.tree.read_bytes()
    result = run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.tree, "--force")
    assert result.exit_code == 2
    assert grown.tree.read_bytes() == before


def test_files_that_are_no_trees(place: SimpleNamespace, run: Run) -> None:
    assert run("anonymity", "check", place.folder / "absent.json", "-k", 5).exit_code == 2
    result = run("anonymity", "check", place.data, "-k", 5)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_it_is_not_added_to_other_forests(grown: SimpleNamespace, run: Run) -> None:
    assert run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.out).exit_code == 0
    before = grown.out.read_bytes()
    new = grown.folder / "new.json"
    for words in (
        ["merge", grown.out, grown.out, "-o", new],
        ["update", grown.out, grown.data, "--epsilon", 1, "--budget", grown.budget],
        ["count", grown.out, grown.data, "--epsilon", 1, "--budget", grown.budget, "-o", new],
    ):
        spent = grown.budget.read_bytes()
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert "anonymity-pruned tree" in result.stderr
        assert not new.exists()
        assert grown.budget.read_bytes() == spent
        assert grown.out.read_bytes() == before


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["check", "prune"])
def test_help_has_an_example_that_works(command: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("anonymity", command, "--help")
    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.split("Example:")[1].splitlines() if f"hedgerow anonymity {command} " in line]
    saved([[14, 6, 5], [14, 7, 6]], tmp_path / "tree.json")
    monkeypatch.chdir(tmp_path)
    words = line.strip(" │").split()[1:]
    assert run(*words).exit_code == 0


def test_help_says_that_it_is_another_kind_of_guarantee(run: Run) -> None:
    assert "not differential privacy" in run("anonymity", "--help").stdout
    assert "NOT differential privacy" in run("anonymity", "prune", "--help").stdout


def test_show_says_what_it_still_tells(grown: SimpleNamespace, run: Run) -> None:
    assert run("anonymity", "prune", grown.tree, "-k", 30, "-o", grown.out).exit_code == 0
    shown = run("show", grown.out)
    assert shown.exit_code == 0, shown.output
    for words in ("smallest path", "homogeneity attack", "NOT differential privacy"):
        assert words in shown.output
    report = grown.folder / "report.html"
    assert run("show", grown.out, "--report", report).exit_code == 0
    assert "not differential privacy" in report.read_text()


def test_invented_counts_never_become_real_ones(tmp_path: Path, run: Run) -> None:
    """A tree that was pruned by hit and miss stays one, however it is pruned again."""
    tree, once, twice = saved([[14, 6, 0], [3, 19, 5]], tmp_path / "tree.json"), tmp_path / "once.json", tmp_path / "twice.json"
    assert run("anonymity", "prune", tree, "-c", 5, "-l", 3, "--hits", "-o", once).exit_code == 0
    assert run("anonymity", "prune", once, "-c", 5, "-l", 3, "-o", twice).exit_code == 0
    assert "by its hit and miss" in Release.load(twice).certificate.reason
    assert "only hit and miss are real" in run("show", once).output


def test_a_schema_that_was_read_from_rows_is_not_shared(tmp_path: Path, run: Run) -> None:
    """Single persons may show in its values and bounds."""
    table, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    table.write_text("age,ill\n" + "".join(f"{20 + i % 60},{'yes' if i % 60 > 30 else 'no'}\n" for i in range(600)) + "117,yes\n")
    assert run("schema", "draft", table, "--target", "ill", "-o", schema).exit_code == 0
    tree = tmp_path / "tree.json"
    fitted = run("fit", table, "--schema", schema, "--algorithm", "local-tree", "--accept-draft", "-o", tree)
    assert fitted.exit_code == 0, fitted.output
    result = run("anonymity", "prune", tree, "-k", 20, "-o", tmp_path / "out.json")
    assert result.exit_code == 2
    assert "read from the rows" in result.output
    assert not (tmp_path / "out.json").exists()
