"""Owners who count together: one release for all, with the law of one curator's; and planted faults, each of which somebody notices.

False alarms of the statistical tests: below 1e-7 each.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import exact as exact_answers
import msgspec
import numpy as np
import pytest
from multiparty.owners import changed, make_parties, run_owners, small_plan
from scipy import stats
from strategies import small_schema, small_table

from hedgerow import Budget, BudgetFile, HedgerowClassifier, PrivateRDTClassifier, PublicPlan, Release, merge, together
from hedgerow import private_table as table_module
from hedgerow.accounting.known_shares import epsilon_without_one
from hedgerow.accounting.loss import text_of_fraction
from hedgerow.accounting.noise import Gaussian, Shares
from hedgerow.accounting.shared_gaussian import gaussian_epsilon_without_one
from hedgerow.engines.memory import MemoryRows
from hedgerow.errors import BudgetError, HedgerowError, MergeError, PlanError, ReleaseError, TogetherError
from hedgerow.mechanisms.noise import add_share
from hedgerow.multiparty.certificates import make_certificate
from hedgerow.multiparty.meeting import Meeting
from hedgerow.multiparty.parties import Parties, add_party
from hedgerow.release.parts import Together
from hedgerow.training.counting import count as count_alone

ALARM = 1e-7
SHORT = 10.0  # seconds that somebody is waited for who does not come


def pooled(plan: Any, numbers: Any) -> Any:
    """The exact counts of all owners' rows."""
    engines = [MemoryRows(*small_table(20 + number), plan.codebook) for number in numbers]
    return [sum(each) for each in zip(*(exact_answers.leaf_counts(engine, plan.trees) for engine in engines), strict=True)]


def errors(results: list[Any]) -> list[str]:
    assert all(isinstance(each, HedgerowError) for each in results), results
    return [str(each) for each in results]


def test_every_owner_ends_with_the_same_release(tmp_path: Path) -> None:
    parties, plan = make_parties(tmp_path, 3), small_plan()
    budgets = [Budget(2) for _ in range(3)]
    releases = run_owners(tmp_path, parties, plan, **{f"owner_{i}": {"budget": budget} for i, budget in enumerate(budgets, start=1)})
    for number, release in enumerate(releases):
        release.save(tmp_path / f"{number}.json")
    assert len({(tmp_path / f"{number}.json").read_bytes() for number in range(3)}) == 1
    assert [str(budget.spent) for budget in budgets] == ["1"] * 3
    release = Release.load(tmp_path / "0.json")
    certificate = release.certificate
    assert (certificate.guarantee, certificate.epsilon) == ("epsilon-DP", "1")
    assert certificate.parts[0].together == Together(["owner-1", "owner-2", "owner-3"], 1, [], "2.276")
    assert any("3 owners counted together" in text and "1 tolerated, 0 absent" in text for text in certificate.assumptions)
    assert any("against 2 owners who put together their shares of the noise it is ε = 2.276" in text for text in certificate.assumptions)
    assert any("no person has rows in two of their tables" in text for text in certificate.assumptions)
    assert release.forest.noise == (Shares(Fraction(2), 3, 2),)
    assert release.forest.tree_noise_sd[0] == pytest.approx(math.sqrt(1.5 * 2 * math.exp(-0.5)) / (1 - math.exp(-0.5)))


def test_without_noise_it_is_what_one_curator_of_all_rows_would_count(tmp_path: Path) -> None:
    """At ε = 1000 the noise is 0 (with probability above 1 - e^(-400))."""
    plan = small_plan("1000")
    for release in run_owners(tmp_path, make_parties(tmp_path, 3), plan, everybody={"epsilon": "1000"}):
        assert all((a == b).all() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 3)), strict=True))


def test_the_tables_of_a_hedgerow_forest(tmp_path: Path) -> None:
    plan = HedgerowClassifier(small_schema(), epsilon="1000").public_plan()
    release = run_owners(tmp_path, make_parties(tmp_path, 3), plan, everybody={"epsilon": "1000"})[0]
    assert all((a == b).all() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 3)), strict=True))
    assert len(release.predict(small_table(5)[0])) == 5


# ---------------------------------------------------------------- the law of the noise, and planted faults in it


def shares_law(noise: Shares, edge: int) -> np.ndarray:
    """P(sum of the shares = x) for |x| <= edge, from the characteristic function."""
    r, n = math.exp(-1 / float(noise.scale)), 8 * edge
    z = np.exp(2j * np.pi * np.arange(n) / n)
    phi = np.abs((1 - r) / (1 - r * z)) ** (2 * noise.added / noise.whole)
    law = np.fft.ifft(phi).real
    return np.concatenate([law[-edge:], law[: edge + 1]])


def noise_p(release: Release, plan: Any) -> float:
    """Chi-square of the noise in all leaves against what the release states."""
    noise = release.forest.noise[0]
    assert isinstance(noise, Shares)
    draws = np.concatenate([(a - b).ravel() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 3)), strict=True)])
    edge = int(20 * noise.scale)
    expected = shares_law(noise, edge) * draws.size
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)
    cells = [[0.0, 0.0]]
    for seen, hoped in zip(observed.tolist(), expected.tolist(), strict=True):
        if cells[-1][1] >= 20:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += hoped
    cells[-2:] = [[a + b for a, b in zip(*cells[-2:], strict=True)]]
    table = np.array(cells)
    return float(stats.chi2.sf(((table[:, 0] - table[:, 1]) ** 2 / table[:, 1]).sum(), len(cells) - 1))


def missing_share(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    """One owner adds no noise."""
    with LOCK:
        CALLS.append(1)
        first = len(CALLS) == 1
    return counts.astype(object) if first else add_share(counts, event, coins, shares)


def wrong_k(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    return add_share(counts, event, coins, shares + 1)


def used_twice(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    """All cells get the noise of the first half again."""
    noisy = add_share(counts, event, coins, shares) - counts
    half = len(noisy) // 2
    return counts + np.concatenate([noisy[:half], noisy[:half], noisy[2 * half :]])


CALLS: list[int] = []
LOCK = threading.Lock()


@pytest.mark.statistical
@pytest.mark.parametrize("planted", [None, missing_share, wrong_k], ids=["as it is", "missing share", "wrong k"])
def test_the_noise_is_what_is_stated_and_a_planted_fault_is_noticed(tmp_path: Path, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    if planted is not None:
        monkeypatch.setattr(table_module, "add_share", planted)
    plan = small_plan("10", trees=80, depth=4)  # scale 8
    assert plan.n_counts > 15_000
    release = run_owners(tmp_path, make_parties(tmp_path, 3), plan)[0]
    assert (noise_p(release, plan) > ALARM) == (planted is None)


@pytest.mark.statistical
@pytest.mark.parametrize("planted", [None, used_twice], ids=["as it is", "used twice"])
def test_cells_have_noise_of_their_own(tmp_path: Path, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted is not None:
        monkeypatch.setattr(table_module, "add_share", planted)
    plan = small_plan("10", trees=20)
    release = run_owners(tmp_path, make_parties(tmp_path, 3), plan)[0]
    noise = np.concatenate([(a - b).ravel() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 3)), strict=True)]).astype(float)
    half = noise.size // 2
    assert (abs(np.corrcoef(noise[:half], noise[half : 2 * half])[0, 1]) < 6 / math.sqrt(half)) == (planted is None)


# ---------------------------------------------------------------- tolerated = 0: exactly the noise of one curator


@pytest.mark.statistical
@pytest.mark.parametrize("planted", [None, wrong_k], ids=["as it is", "wrong k"])
def test_with_none_tolerated_the_noise_is_that_of_one_curator(tmp_path: Path, planted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly one draw; the certificate names the ε against readers, and the one against an owner who knows its share."""
    if planted is not None:
        monkeypatch.setattr(table_module, "add_share", planted)
    plan, budget = small_plan("10", trees=80, depth=4), Budget(100)
    release = run_owners(tmp_path, make_parties(tmp_path, 3, 0), plan, everybody={"trust_owners": True}, owner_1={"budget": budget})[0]
    assert release.forest.noise == (Shares(Fraction(8), 3, 3),)
    assert (noise_p(release, plan) > ALARM) == (planted is None)
    assert budget.spent == 10
    certificate = Release.from_json(msgspec.json.encode(release.document())).certificate
    assert certificate.epsilon == "10"
    (said,) = [text for text in certificate.assumptions if "counted together" in text]
    assert "none uses its own share against the others (0 tolerated, 0 absent)" in said
    assert said.endswith(f"; against an owner who knows its own share of the noise it is ε = {epsilon_told(plan, 3)}")


def epsilon_told(plan: Any, whole: int) -> str:
    return text_of_fraction(epsilon_without_one(plan.epsilon, Fraction(len(plan.trees)), whole))


def test_with_none_tolerated_an_owner_who_does_not_trust_the_others_is_told_and_pays_nothing(tmp_path: Path) -> None:
    budget = Budget(5)
    with pytest.raises(
        PlanError, match=r"ε = 1 against whoever reads .* knows its own share of the noise it is ε = 1\.713\. Nothing was spent"
    ):
        together(small_plan(), *small_table(5), parties=make_parties(tmp_path, 3, 0), party=1, disjoint=True, budget=budget)
    assert not budget.spent


def test_with_none_tolerated_all_must_come(tmp_path: Path) -> None:
    assert make_parties(tmp_path, 5, 0).least_present == 5


# ---------------------------------------------------------------- with a δ: Gaussian noise in shares


def delta_plan(epsilon: str = "1", trees: int = 40, depth: int = 4) -> PublicPlan:
    model = PrivateRDTClassifier(small_schema(), epsilon=epsilon, n_estimators=trees, max_depth=depth, random_state=1)
    return model.public_plan(delta="1e-6")


def half_the_noise(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    return add_share(counts, event, coins, 2 * shares)


@pytest.mark.statistical
@pytest.mark.parametrize("tolerated", [0, 1])
@pytest.mark.parametrize("planted", [None, half_the_noise], ids=["as it is", "wrong scale"])
def test_gaussian_noise_in_shares(tmp_path: Path, planted: Any, tolerated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted is not None:
        monkeypatch.setattr(table_module, "add_share", planted)
    plan, budget = delta_plan(), Budget(2, Fraction(1, 10**5))
    parties = make_parties(tmp_path, 3, tolerated)
    release = run_owners(tmp_path, parties, plan, everybody={"trust_owners": not tolerated}, owner_1={"budget": budget})[0]
    assert (budget.spent, budget.remaining_delta) == (1, Fraction(9, 10**6))
    (noise,) = release.forest.noise
    assert noise == Gaussian(plan.event.scale * Fraction(3, 3 - tolerated))
    draws = np.concatenate([(a - b).ravel() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 3)), strict=True)])
    found = float((draws.astype(float) ** 2).sum()) / float(noise.sigma_squared)
    assert (ALARM < stats.chi2.sf(found, draws.size) < 1 - ALARM) == (planted is None)
    certificate = Release.from_json(msgspec.json.encode(release.document())).certificate
    assert (certificate.guarantee, certificate.epsilon, certificate.delta) == ("epsilon-delta-DP", "1", "0.000001")
    part = certificate.parts[0]
    assert isinstance(part.together, Together)
    assert any("within a billionth of one draw" in text for text in certificate.assumptions)
    stated = gaussian_epsilon_without_one(plan.event.rho, plan.delta, 3 - tolerated)
    assert part.together.beyond == text_of_fraction(stated)
    refused_to_load(release, msgspec.structs.replace(part, together=msgspec.structs.replace(part.together, beyond="1.001")))
    refused_to_load(release, msgspec.structs.replace(part, epsilon="0.999999999"))  # no room for the distance from one draw


def test_shares_that_are_too_small_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    budgets = {f"owner_{i}": {"budget": Budget(100, Fraction(1, 10))} for i in (1, 2, 3)}
    everybody = {"epsilon": "50", "timeout": 20.0}
    texts = errors(run_owners(tmp_path, make_parties(tmp_path, 3), delta_plan("50", trees=2), everybody=everybody, **budgets))
    assert any("too small for their sum to be like one draw. Nothing was spent" in text for text in texts)
    assert all(not each["budget"].spent for each in budgets.values())


# ---------------------------------------------------------------- who may be absent, and who not


@pytest.mark.slow
def test_an_owner_may_be_absent_and_is_named(tmp_path: Path) -> None:
    parties, plan = make_parties(tmp_path, 5, tolerated=2), small_plan("1000")
    releases = run_owners(tmp_path, parties, plan, present=[1, 2, 4, 5], everybody={"wait": SHORT, "epsilon": "1000"})
    for release in releases:
        found = release.certificate.parts[0].together
        assert isinstance(found, Together)
        assert (found.owners, found.tolerated, found.absent) == ([f"owner-{i}" for i in range(1, 6)], 2, ["owner-3"])
        assert found.words_beyond == "against 2 owners who put together their shares of the noise it is ε = 1001"
        assert all((a == b).all() for a, b in zip(release.forest.counts, pooled(plan, (1, 2, 4, 5)), strict=True))
        assert release.forest.noise == (Shares(Fraction(2, 1000), 4, 3),)


@pytest.mark.slow
def test_with_too_few_nobody_begins(tmp_path: Path) -> None:
    budget = Budget(1)
    results = run_owners(tmp_path, make_parties(tmp_path, 3), small_plan(), present=[1, 3], everybody={"wait": 2, "budget": budget})
    for text in errors(results):
        assert "owner-2 (party 2)" in text
        assert "did not come within 2 seconds: " in text
        assert "of 3 owners are here, and at least 3 are needed. Nothing was spent" in text
    assert not budget.spent


# ---------------------------------------------------------------- planted faults before the charge: nothing is spent


def refused(tmp_path: Path, words: str, k: int = 3, **changed_: Any) -> None:
    budgets = {f"owner_{i}": {"budget": Budget(100)} for i in range(1, k + 1)}
    given = {who: {**each, **changed_.get(who, {})} for who, each in budgets.items()}
    parties = changed_.pop("parties", None) or make_parties(tmp_path, k)
    texts = errors(run_owners(tmp_path, parties, changed_.pop("plan", small_plan()), everybody={"timeout": 20.0}, **given))
    assert any(words in text for text in texts), texts
    assert all(not each["budget"].spent for each in budgets.values())


def test_another_plan(tmp_path: Path) -> None:
    refused(tmp_path, "has another plan than party", owner_2={"plan": small_plan(seed=7)})


def test_another_epsilon(tmp_path: Path) -> None:
    refused(tmp_path, "has a plan with another ε than party", owner_2={"plan": small_plan("2")})


def test_another_schema(tmp_path: Path) -> None:
    plan = small_plan()
    schema = replace(plan.schema, rows=77)
    refused(
        tmp_path,
        "has a plan with another schema than party",
        owner_3={"plan": replace(plan, codebook=replace(plan.codebook, schema=schema))},
    )


def test_another_number_tolerated(tmp_path: Path) -> None:
    parties = make_parties(tmp_path, 5, tolerated=1)
    words = "another number of owners who may be absent or tell"
    refused(tmp_path, words, 5, parties=parties, owner_2={"parties": replace(parties, tolerated=2)})


@pytest.mark.slow
def test_another_number_of_owners(tmp_path: Path) -> None:
    parties = make_parties(tmp_path, 4)
    fewer = replace(parties, owners=parties.owners[:3])
    results = run_owners(tmp_path, fewer, small_plan(), everybody={"wait": SHORT, "timeout": SHORT}, owner_1={"parties": parties})
    assert any("owner-4 (party 4) did not come" in text for text in errors(results))


@pytest.mark.slow
def test_a_certificate_that_is_not_the_declared_one(tmp_path: Path) -> None:
    parties = make_parties(tmp_path, 3)
    other = make_certificate(tmp_path / "other.key", "owner-2")
    mine = changed(parties, 2, certificate=other)
    results = run_owners(
        tmp_path, parties, small_plan(), everybody={"wait": SHORT}, owner_2={"parties": mine, "key": tmp_path / "other.key"}
    )
    assert any("its certificate or yours is not the declared one" in text for text in errors(results))


def test_a_certificate_of_another_party(tmp_path: Path) -> None:
    """Owner 1 takes the place of owner 2 with its own, declared certificate: its key does not belong there."""
    parties = make_parties(tmp_path, 3)
    with pytest.raises(HedgerowError, match="does not belong to your certificate"):
        Meeting(parties, 2, tmp_path / "owner-1.key")


def test_an_owner_that_does_not_state_that_persons_are_disjoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match="needs every owner's word"):
        together(small_plan(), *small_table(5), parties=make_parties(tmp_path, 3), party=1)


@pytest.mark.slow
def test_a_budget_that_cannot_pay_is_noticed_before_others_wait(tmp_path: Path) -> None:
    poor, rich = Budget(Fraction(1, 2)), Budget(5)
    parties, everybody = make_parties(tmp_path, 3), {"wait": 1.5, "budget": rich}
    results = run_owners(tmp_path, parties, small_plan(), everybody=everybody, owner_2={"budget": poor})
    assert isinstance(results[1], BudgetError)
    assert all("did not come" in text for text in errors([results[0], results[2]]))
    assert not rich.spent


@pytest.mark.slow
def test_a_party_that_joins_twice(tmp_path: Path) -> None:
    """The second one is told and ends; the others are not disturbed."""
    parties, plan = make_parties(tmp_path, 3), small_plan()
    with Background(tmp_path, parties, plan) as first:
        first.wait_for(1, 3)
        with pytest.raises(TogetherError, match=r"refuses: owner-1 \(party 1\) is here already|cannot listen"):
            together(plan, *small_table(5), parties=parties, party=1, key=tmp_path / "owner-1.key", disjoint=True, wait=20)
        assert isinstance(first.finish(), Release)


class Background:
    """Owners 1 and 3 wait for owner 2."""

    def __init__(self, folder: Path, parties: Parties, plan: Any) -> None:
        self.folder, self.parties, self.plan, self.results = folder, parties, plan, []
        self.arrived, self.patch = threading.Event(), pytest.MonkeyPatch()

    def __enter__(self) -> Background:
        came = Meeting._came

        def noticed(meeting: Meeting, peer: int, *streams: Any) -> None:
            came(meeting, peer, *streams)
            if (meeting.number, peer) == (3, 1):
                self.arrived.set()

        self.patch.setattr(Meeting, "_came", noticed)
        self.thread = threading.Thread(target=lambda: self.results.extend(run_owners(self.folder, self.parties, self.plan, present=[1, 3])))
        self.thread.start()
        return self

    def wait_for(self, *numbers: int) -> None:
        assert self.arrived.wait(60)

    def finish(self) -> Any:
        release = run_owners(self.folder, self.parties, self.plan, present=[2])[0]
        self.thread.join()
        assert [type(each) for each in self.results] == [Release] * 2, self.results
        return release

    def __exit__(self, *error: Any) -> None:
        self.thread.join()
        self.patch.undo()


# ---------------------------------------------------------------- planted faults after the charge: it stays


class Gone(Exception):
    """One owner's engine fails."""


def test_a_party_that_stops_in_mid_round_ends_the_others_and_the_charge_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = {f"owner_{i}": {"budget": BudgetFile.create(tmp_path / f"{i}.json", 3)} for i in range(1, 4)}
    reads = MemoryRows.sums

    calls: list[int] = []

    def first_fails(engine: Any, query: Any) -> Any:
        with LOCK:
            calls.append(1)
            if len(calls) == 1:
                raise Gone
        return reads(engine, query)

    monkeypatch.setattr(MemoryRows, "sums", first_fails)
    results = run_owners(tmp_path, make_parties(tmp_path, 3), small_plan(), **budgets)
    assert sum(isinstance(each, Gone) for each in results) == 1
    for text in errors([each for each in results if not isinstance(each, Gone)]):
        assert "has stopped: " in text or "left while adding up" in text
    assert all(str(each["budget"].spent) == "1" for each in budgets.values())
    again = run_owners(tmp_path, make_parties(tmp_path_of(tmp_path, "again"), 3), small_plan(), **{
        who: {**each, "again": True, "key": tmp_path / "again" / f"owner-{who[-1]}.key"} for who, each in budgets.items()
    })  # fmt: skip
    assert all(isinstance(each, Release) for each in again)
    assert all(str(each["budget"].spent) == "2" for each in budgets.values())  # a new run pays again


def tmp_path_of(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


@pytest.mark.slow
def test_a_party_that_stays_silent_ends_the_others_in_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, calls, over = MemoryRows.sums, [], threading.Event()

    def first_waits(engine: Any, query: Any) -> Any:
        with LOCK:
            calls.append(1)
            first = len(calls) == 1
        if first:
            over.wait(60)
        return reads(engine, query)

    monkeypatch.setattr(MemoryRows, "sums", first_waits)
    ended: list[Any] = []
    left = Meeting.__exit__

    def leave(meeting: Meeting, *error: Any) -> None:
        left(meeting, *error)
        ended.append(meeting.number)
        if len(ended) == 2:
            over.set()  # the silent one may go on, and finds nobody

    monkeypatch.setattr(Meeting, "__exit__", leave)
    texts = errors(run_owners(tmp_path, make_parties(tmp_path, 3), small_plan(), everybody={"timeout": SHORT}))
    assert any("sent nothing for 10 seconds while adding up" in text for text in texts)
    assert all("what was charged stays charged" in text or "has stopped" in text for text in texts)


# ---------------------------------------------------------------- a share leaves by the secure sum alone


def logs_it(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    noisy = add_share(counts, event, coins, shares)
    logging.getLogger("hedgerow").debug("share %s", noisy.tolist())
    return noisy


def writes_it(counts: Any, event: Any, coins: Any, shares: int) -> Any:
    noisy = add_share(counts, event, coins, shares)
    Path("kept.txt").write_text(str(noisy.tolist()))
    return noisy


@pytest.mark.parametrize("planted", [add_share, logs_it, writes_it], ids=["as it is", "logged", "written"])
def test_a_share_is_neither_logged_nor_written(
    tmp_path: Path, planted: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    caplog.set_level(logging.DEBUG)
    shares: list[int] = []

    def listen(*given: Any) -> Any:
        noisy = planted(*given)
        shares.extend(int(number) for number in noisy)
        return noisy

    monkeypatch.setattr(table_module, "add_share", listen)
    for release in run_owners(tmp_path, make_parties(tmp_path, 3), small_plan("1/100000")):  # scale 200,000: numbers that are found
        release.save(tmp_path / "forest.json")
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    told = caplog.text + "".join(capfd.readouterr()) + written
    long = [str(number) for number in shares if abs(number) > 10_000]
    assert len(long) > 30
    assert (sum(number in told for number in long) < len(long) / 10) == (planted is add_share)


# ---------------------------------------------------------------- certificates and merges


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("joint")
    release: Release = run_owners(folder, make_parties(folder, 3), small_plan())[0]
    return release


@pytest.mark.parametrize(
    "fields",
    [
        {"tolerated": 2},
        {"tolerated": 0},
        {"tolerated": 0, "beyond": msgspec.UNSET},
        {"beyond": "2.275"},
        {"owners": ["owner-1", "owner-2"]},
        {"owners": ["owner-1", "owner-2", "owner-2"]},
        {"absent": ["owner-1"]},
        {"owners": ["owner-1", "owner-2", "a\nb"]},
    ],
    ids=str,
)
def test_a_certificate_that_is_not_proven_is_refused(joint: Release, fields: dict[str, Any]) -> None:
    part = joint.certificate.parts[0]
    assert isinstance(part.together, Together)
    forged = msgspec.structs.replace(part, together=msgspec.structs.replace(part.together, **fields))
    refused_to_load(joint, forged)


def refused_to_load(release: Release, part: Any) -> None:
    with pytest.raises(ReleaseError):
        Release.from_json(msgspec.json.encode(rewritten(release, part).document()))


def rewritten(release: Release, part: Any) -> Release:
    from hedgerow.release.certificate import certificate_of

    return Release(
        replace(release.forest, noise=(part.noise(part.events[0]),)),
        certificate_of([part]),
        algorithm=release.algorithm,
        vote=release.vote,
        parameters=release.parameters,
        chosen=release.chosen,
    )


def test_a_certificate_of_before_that_does_not_say_what_is_beyond(joint: Release) -> None:
    """The files of the first releases are read as they are."""
    part = joint.certificate.parts[0]
    assert isinstance(part.together, Together)
    old = msgspec.structs.replace(part, together=msgspec.structs.replace(part.together, beyond=msgspec.UNSET))
    release = rewritten(joint, old)
    assert Release.from_json(msgspec.json.encode(release.document())).certificate.assumptions[-2].endswith("(1 tolerated, 0 absent)")


def test_a_certificate_without_the_owners_words_is_refused(joint: Release) -> None:
    refused_to_load(joint, msgspec.structs.replace(joint.certificate.parts[0], disjoint=False))
    refused_to_load(joint, msgspec.structs.replace(joint.certificate.parts[0], owner="somebody"))


def test_noise_that_is_stated_smaller_is_refused(joint: Release) -> None:
    forged = Release(
        replace(joint.forest, noise=(Fraction(2),)), joint.certificate, algorithm=joint.algorithm, vote=joint.vote,
        parameters=joint.parameters, chosen=joint.chosen,
    )  # fmt: skip
    with pytest.raises(ReleaseError, match="noise"):
        Release.from_json(msgspec.json.encode(forged.document()))


def test_merging_with_another_owner(joint: Release) -> None:
    plan = small_plan()
    fourth = count_alone(plan, *small_table(9), owner="owner-4", disjoint=True)
    merged = merge([joint, fourth])
    assert merged.certificate.epsilon == "1"
    assert set(merged.forest.noise) == {Fraction(2), Shares(Fraction(2), 3, 2)}
    assert merge([fourth, joint]).certificate == merged.certificate
    assert Release.from_json(msgspec.json.encode(merged.document())).certificate == merged.certificate
    with pytest.raises(MergeError, match="'owner-2' is in"):
        merge([joint, count_alone(plan, *small_table(9), owner="owner-2", disjoint=True)])
    with pytest.raises(MergeError, match="is in release 1 already"):
        merge([joint, joint])


# ---------------------------------------------------------------- the parties' file


def test_the_file_grows_by_one_owner_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "parties.toml"
    parties = make_parties(tmp_path, 3)
    assert [add_party(file, party) for party in parties.owners] == [1, 2, 3]
    assert Parties.load(file).digest == parties.digest
    with pytest.raises(TogetherError, match="is there already"):
        add_party(file, parties.owners[0])


@pytest.mark.parametrize(("k", "tolerated"), [(2, 1), (2, 0), (3, 2), (4, 2), (3, -1), (5, True)])
def test_too_few_or_too_many_tolerated(tmp_path: Path, k: int, tolerated: int) -> None:
    with pytest.raises(TogetherError, match="expected"):
        make_parties(tmp_path, k, tolerated)


def test_one_certificate_for_two(tmp_path: Path) -> None:
    parties = make_parties(tmp_path, 3)
    with pytest.raises(TogetherError, match="two owners have the same certificate"):
        changed(parties, 2, certificate=parties.owners[0].certificate)


@pytest.mark.parametrize(
    "text",
    [
        "what = 3",
        "[[party]]\nname = 3",
        "[[party]]\nname='a'\naddress='b'\ncertificate='c'",
        "=",
        "[[party]]\nname='a'\naddress='b:1'\ncertificate='c'",
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "parties.toml").write_text(text)
    with pytest.raises(TogetherError):
        Parties.load(tmp_path / "parties.toml")


def test_a_forest_in_place_of_a_plan(tmp_path: Path, joint: Release) -> None:
    with pytest.raises(PlanError, match=r"got a forest; expected a plan"):
        together(joint, *small_table(5), parties=make_parties(tmp_path, 3), party=1, disjoint=True)  # type: ignore[arg-type]
