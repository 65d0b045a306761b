"""`hedgerow evaluate`, `update` and `count FOREST` at a service that are interrupted: the same command goes on, nothing is paid twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import run
from remote.conftest import SCHEMA, Served, Servers

from hedgerow import Budget, PrivateRDTClassifier, Target
from hedgerow.accounting.budget_file import BudgetFile
from hedgerow.curator.http import session_routes
from hedgerow.curator.http.sessions import ended
from hedgerow.errors import CuratorError
from hedgerow.release.release import Release
from hedgerow.remote.kept_answers import KeptAnswers
from hedgerow.remote.request_file import RequestFile
from hedgerow.remote.transport import Transport
from hedgerow.training.counting import count

_ = run  # the fixture
Run = Callable[..., Any]
GONE = CuratorError("the service cannot be reached. Check that it runs, then try again.")


@pytest.fixture
def page(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HEDGEROW_TOKEN", served.ada)
    return served.page


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    """Of other rows."""
    (tmp_path / "own.csv").write_text("age,smoker,class\n" + "20,no,a\n70,yes,b\n" * 200)
    plan = PrivateRDTClassifier(SCHEMA, epsilon="1", n_estimators=2, max_depth=1, random_state=1).public_plan()
    count(plan, tmp_path / "own.csv", budget=Budget(1), batch="own").save(tmp_path / "forest.json")
    return tmp_path / "forest.json"


def said(result: Any) -> str:
    return " ".join(result.output.split())


def spent(served: Served) -> Fraction:
    return served.curator.ledger.balance("visits").spent


def breaks(monkeypatch: pytest.MonkeyPatch, ending: str, error: BaseException, sent: bool = True) -> None:
    """Requests of this address fail; sent: when the service has answered."""
    real = Transport.bytes

    def broken(self: Transport, method: str, path: str, *given: Any, **how: Any) -> bytes:
        found = real(self, method, path, *given, **how) if sent or not path.endswith(ending) else b""
        if path.endswith(ending):
            raise error
        return found

    monkeypatch.setattr(Transport, "bytes", broken)


class Kept:
    """The one score whose answers are kept there."""

    def __init__(self, folder: Path, state: str = "request") -> None:
        self.folder, self.pattern = folder, f"score-*.{state}"

    def exists(self) -> bool:
        return any(self.folder.glob(self.pattern))

    @property
    def path(self) -> Path:
        (found,) = self.folder.glob(self.pattern)
        return found


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GONE], ids=["Ctrl-C", "gone"])
def test_a_score_goes_on(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    budget, kept = BudgetFile.create(tmp_path / "budget.json", "1"), Kept(tmp_path)
    command = ("evaluate", forest, page, "--epsilon", "1/2", "--budget", budget.path)
    with monkeypatch.context() as patch:
        breaks(patch, "/confusion", error)
        broken = run(*command)
    assert broken.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert "Run the same command again to go on" in said(broken)
    assert (kept.exists(), spent(served), budget.spent) == (True, Fraction(1, 2), Fraction(1, 2))
    again = run(*command)
    assert (again.exit_code, "accuracy:" in said(again)) == (0, True), again.output
    assert "going on with the request of an earlier run" in said(again)
    assert (kept.exists(), served.charges(), spent(served), budget.spent) == (False, ["0.5"], Fraction(1, 2), Fraction(1, 2))


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("query", ["confusion", "reliability"])
def test_of_several_queries_what_was_not_asked_is_asked_then(
    served: Served, page: str, forest: Path, run: Run, monkeypatch: pytest.MonkeyPatch, query: str, sent: bool
) -> None:
    """The session of the first run has ended by then; what both cost together is what was asked for."""
    command = ("evaluate", forest, page, "--epsilon", "1/2", "--calibration")
    with monkeypatch.context() as patch:
        breaks(patch, f"/{query}", KeyboardInterrupt(), sent)
        assert run(*command).exit_code == 130
    asked = [(False, "confusion"), (True, "confusion"), (False, "reliability"), (True, "reliability")].index((sent, query))
    assert spent(served) == [0, Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)][asked]
    again = run(*command)
    assert (again.exit_code, "expected calibration error" in said(again)) == (0, True), again.output
    assert spent(served) == Fraction(1, 2)
    assert served.curator.ledger.verify().sound


def test_a_score_that_was_never_shown_is_shown(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers are there: the service is not asked for any."""
    command = ("evaluate", forest, page, "--epsilon", "1/2", "--auc", "-o", tmp_path / "roc.html")
    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.evaluation.private.score_of", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(*command).exit_code == 130
    with monkeypatch.context() as patch:
        breaks(patch, "/score_bins", GONE, sent=False)
        again = run(*command)
    assert (again.exit_code, (tmp_path / "roc.html").exists(), served.charges()) == (0, True, ["0.5"]), again.output
    assert not list(tmp_path.glob("*.request"))


def test_the_same_score_is_shown_again_for_free(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, kept = BudgetFile.create(tmp_path / "budget.json", "2"), Kept(tmp_path, "answered")
    command = ("evaluate", forest, page, "--epsilon", "1/2", "--auc", "--budget", budget.path)
    first = run(*command)
    assert (first.exit_code, kept.exists()) == (0, True), first.output
    scores = [said(first)]
    with monkeypatch.context() as patch:
        breaks(patch, "/score_bins", GONE, sent=False)  # nothing is asked
        for _ in range(2):
            scores.append(said(run(*command)))
    assert all("this was paid for before: its answers are taken, and nothing is paid." in each for each in scores[1:])
    assert len({each[each.index("noisy confusion matrix") : each.index("guarantee")] for each in scores}) == 1
    assert (served.charges(), budget.spent) == (["0.5"], Fraction(1, 2))
    assert run(*command, "--again").exit_code == 0
    assert (served.charges(), budget.spent) == (["0.5", "0.5"], Fraction(1))
    assert run("evaluate", forest, page, "--epsilon", "1/4").exit_code == 0
    for each in tmp_path.glob("score-*.answered"):
        each.write_bytes(b"half a l")
    assert run("evaluate", forest, page, "--epsilon", "1/4").exit_code == 0
    assert len(served.charges()) == 4
    assert not list(tmp_path.glob("*.request"))


def test_a_picture_of_a_score_that_was_paid_for_is_free(served: Served, page: str, forest: Path, run: Run, tmp_path: Path) -> None:
    """Answers were kept beside the picture, or beside the forest: `-o` added, another `-o` or a copied forest paid again, without a word.
    And one score took the place of another's answers."""
    command = (page, "--epsilon", "1/4", "--auc")
    assert run("evaluate", forest, *command).exit_code == 0
    assert run("evaluate", forest, page, "--epsilon", "1/4").exit_code == 0  # another score
    assert served.charges() == ["0.25", "0.25"]
    copy = tmp_path / "copy.json"
    copy.write_bytes(forest.read_bytes())
    for source, more in ((forest, ()), (forest, ("-o", "a.html")), (forest, ("-o", "b.svg")), (copy, ("-o", "c.html")), (copy, ())):
        again = run("evaluate", source, *command, *(tmp_path / each if "." in each else each for each in more))
        assert (again.exit_code, served.charges()) == (0, ["0.25", "0.25"]), again.output
        assert "nothing is paid" in said(again)
    assert all((tmp_path / name).exists() for name in ("a.html", "b.svg", "c.html"))
    assert run("evaluate", forest, *command, "-o", tmp_path / "d.html", "--again").exit_code == 0
    assert len(served.charges()) == 3


def test_the_class_of_thresholds_is_no_other_score_without_them(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three classes the same confusion matrix was paid for again, for each --positive."""
    three = replace(SCHEMA, target=Target("class", ["a", "b", "c"]))
    served.curator.registry.register("three", tmp_path / served.name / "visits.csv", three)
    served.curator.ledger.ceiling("three", 2)
    served.curator.accounts.grant("ada", "three", ["research"])
    plan = PrivateRDTClassifier(three, epsilon="1", n_estimators=2, max_depth=1, random_state=1).public_plan()
    count(plan, tmp_path / "own.csv", budget=Budget(1)).save(forest)
    command = ("evaluate", forest, page.replace("/visits", "/three"), "--epsilon", "1/4")
    for more in ((), ("--positive", "a"), ("--positive", "b")):
        scored = run(*command, *more)
        assert (scored.exit_code, served.charges()) == (0, ["0.25"]), scored.output
    for label in "ab":
        assert run(*command, "--auc", "--positive", label).exit_code == 0
    assert len(served.charges()) == 3


@pytest.mark.parametrize(
    "words", [("update", "forest.json", "URL"), ("count", "forest.json", "URL", "-o", "more.json")], ids=lambda w: w[0]
)
def test_counts_in_the_trees_of_a_forest_go_on(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    command = [page if word == "URL" else tmp_path / word if word.endswith(".json") else word for word in (*words, "--epsilon", "1/2")]
    before, target = forest.read_bytes(), tmp_path / ("forest.json" if words[0] == "update" else "more.json")
    with monkeypatch.context() as patch:
        breaks(patch, "/leaf_counts", KeyboardInterrupt())
        assert run(*command).exit_code == 130
    assert (forest.read_bytes(), spent(served)) == (before, Fraction(1, 2))
    again = run(*command)
    assert again.exit_code == 0, again.output
    assert "left for you at the service" in said(again)
    assert (len(Release.load(target).certificate.parts), served.charges(), spent(served)) == (2, ["0.5"], Fraction(1, 2))
    assert not list(tmp_path.glob("*.request"))


def test_what_was_refused_or_never_asked_is_not_kept(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = BudgetFile.create(tmp_path / "budget.json", "1/8")
    assert run("evaluate", forest, page, "--epsilon", "1/2", "--budget", small.path).exit_code == 3
    dear = run("evaluate", forest, page, "--epsilon", "50")
    assert (dear.exit_code, "Nothing was spent" in said(dear), "warning" in said(dear)) == (3, True, False), dear.output
    with monkeypatch.context() as patch:
        breaks(patch, "/confusion", CuratorError("no", 400, "plan"), sent=False)
        assert run("evaluate", forest, page, "--epsilon", "1/2").exit_code == 2
    assert (list(tmp_path.glob("*.request")), spent(served)) == ([], 0)


def test_a_table_that_cannot_be_read_has_cost_nothing(served: Served, page: str, forest: Path, run: Run, tmp_path: Path) -> None:
    """It said that what was looked at stays charged."""
    (tmp_path / served.name / "visits.csv").unlink()
    budget = BudgetFile.create(tmp_path / "budget.json", 1)
    for more in ((), ("--budget", budget.path)):
        failed = run("evaluate", forest, page, "--epsilon", "1/2", *more)
        assert (failed.exit_code, spent(served)) == (2, 0), failed.output
        assert "looked at stays charged" not in said(failed)
        stays = "although the service has charged nothing" if more else "Nothing was charged, no row was read."
        assert stays in said(failed)


def test_an_answer_that_is_lost_is_not_paid_for_again_unasked(
    served: Served, servers: Servers, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, kept = ("evaluate", forest, page, "--epsilon", "1/2"), Kept(tmp_path)
    with monkeypatch.context() as patch:
        breaks(patch, "/confusion", KeyboardInterrupt())
        run(*command)
    with monkeypatch.context() as patch:
        patch.setattr(session_routes, "_stored", lambda *_: (_ for _ in ()).throw(ended()))
        lost = run(*command)
    assert (lost.exit_code, "its answer is lost" in said(lost), spent(served), kept.exists()) == (2, True, Fraction(1, 2), False)


def test_a_session_that_was_not_noted_has_cost_nothing(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the acknowledgement and the note: the key is used, and no query was sent."""
    command, kept = ("evaluate", forest, page, "--epsilon", "1/2"), Kept(tmp_path)
    with monkeypatch.context() as patch:
        breaks(patch, "/confusion", KeyboardInterrupt(), sent=False)
        patch.setattr(RequestFile, "forget", lambda _: None)
        run(*command)
    first, *others = kept.path.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["type"] for line in others] == ["session"]
    kept.path.write_bytes(first + others[0][:20])  # and half a line
    again = run(*command)
    assert (again.exit_code, spent(served), kept.exists()) == (0, Fraction(1, 2), False), again.output


def test_a_session_that_the_service_does_not_know_any_more(
    served: Served, page: str, forest: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an older copy was put back: "run the same command again" would help nobody."""
    command, kept = ("evaluate", forest, page, "--epsilon", "1/2"), Kept(tmp_path)
    with monkeypatch.context() as patch:
        breaks(patch, "/confusion", KeyboardInterrupt())
        run(*command)
    first, session = kept.path.read_text().splitlines()
    id = json.loads(session)["form"]["id"]
    kept.path.write_text(f"{first}\n{session.replace(id, 'f' * len(id))}\n")
    again = run(*command)
    assert (again.exit_code, served.charges(), kept.exists()) == (2, ["0.5"], True), again.output
    assert "does not know it any more. Was the service put back from a copy" in said(again)
    assert "Run the same command again" not in said(again)
    assert "could not be ended" not in said(again)


def test_two_commands_do_not_go_on_with_one_request(tmp_path: Path) -> None:
    request = RequestFile.open(tmp_path / "roc.html", "https://host/datasets/a", "evaluate", {})
    first = KeptAnswers(request)
    with pytest.raises(CuratorError, match="is used by another command"):
        KeptAnswers(request)
    first.close()
    KeptAnswers(request).close()


def test_an_answer_to_another_query_is_not_taken(tmp_path: Path) -> None:
    request = RequestFile.open(tmp_path / "roc.html", "https://host/datasets/a", "evaluate", {})
    kept = KeptAnswers(request)
    kept.keep("confusion", b"{}", b"[1]")
    kept.close()
    again = KeptAnswers(request)
    assert (again.answer(0, "confusion", b"{}"), again.answer(1, "confusion", b"{}")) == (b"[1]", None)
    with pytest.raises(CuratorError, match="an answer to another query than this one"):
        again.answer(0, "confusion", b"[]")
