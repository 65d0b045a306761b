"""`hedgerow federate` against three curators that really listen: named reasons, answers that are kept, and one charge each."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from curator.http.serving import wait_until
from remote.conftest import SCHEMA, Served, Servers
from typer.testing import CliRunner

import hedgerow
from hedgerow import Categorical, HedgerowClassifier, Numeric, PrivateRDTClassifier, PublicPlan, Release, Schema, Target
from hedgerow.cli import app
from hedgerow.curator.ledger.heads import KEY_FILE
from hedgerow.errors import BudgetError, CuratorError
from hedgerow.release.signing import make_key
from hedgerow.remote.federation import differences

SOURCES = str(Path(hedgerow.__file__).parents[1])
Hold = Callable[[str], threading.Event]


@dataclass
class Three:
    """Three clinics, a plan, and a file with the tokens of all."""

    folder: Path
    clinics: list[Served]
    plan: PublicPlan

    def words(self, *more: object, clinics: list[Served] | None = None) -> list[str]:
        pages = [clinic.page for clinic in clinics or self.clinics]
        given = ["--plan", self.folder / "plan.json", "--tokens", self.folder / "tokens.txt", "-o", self.folder / "forest.json"]
        return ["federate", *map(str, [*pages, *given, *more])]

    def run(self, *more: object, clinics: list[Served] | None = None, code: int = 0) -> str:
        done = CliRunner().invoke(app, self.words(*more, clinics=clinics), env={"COLUMNS": "250"})
        assert done.exit_code == code, done.output
        return done.output

    @property
    def kept(self) -> list[Path]:
        return sorted((self.folder / "forest.federation").glob("*-*.json"))

    @property
    def forest(self) -> Release:
        return Release.load(self.folder / "forest.json")

    @property
    def forests(self) -> list[Path]:
        return list(self.folder.glob("forest.json"))

    def charges(self) -> list[list[str]]:
        return [clinic.charges() for clinic in self.clinics]


def tokens(folder: Path, clinics: list[Served]) -> None:
    file = folder / "tokens.txt"
    file.write_text("# who is asked\n\n" + "".join(f"{clinic.url}/ {clinic.ada}\n" for clinic in clinics))
    file.chmod(0o600)


@pytest.fixture
def three(servers: Servers, tmp_path: Path) -> Three:
    clinics = [servers.new(f"Clinic {name}", rows=rows) for name, rows in (("A", 300), ("B", 400), ("C", 500))]
    plan = HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(rows=1000, tables=3)
    plan.save(tmp_path / "plan.json")
    tokens(tmp_path, clinics)
    return Three(tmp_path, clinics, plan)


def stored(clinic: Served) -> bytes:
    (file,) = clinic.curator.releases.glob("*.json")
    return file.read_bytes()


@pytest.mark.slow
def test_as_merged_by_hand(three: Three) -> None:
    said = three.run("--disjoint")
    assert said.count("answered") == 3
    by_hand = hedgerow.merge([Release.from_json(stored(clinic)) for clinic in three.clinics], disjoint=True)
    forest = three.forest
    assert [c.tolist() for c in forest.forest.counts] == [c.tolist() for c in by_hand.forest.counts]
    assert (forest.certificate.epsilon, forest.certificate.private) == ("0.5", True)
    assert [part.owner for part in forest.certificate.parts] == ["Clinic A", "Clinic B", "Clinic C"]
    assert [file.read_bytes() for file in three.kept] == [stored(clinic) for clinic in three.clinics]
    assert three.charges() == [["0.5"]] * 3
    again = three.run("--disjoint", "--force")  # all is there: nobody is asked
    assert again.count("kept from an earlier run") == 3
    assert three.charges() == [["0.5"]] * 3
    assert "exists already" in three.run(code=2)


def test_a_table_that_may_hold_no_row_is_named(servers: Servers, tmp_path: Path) -> None:
    clinics = [servers.new("Clinic A"), servers.new("Clinic B", rows=1)]
    plan = PrivateRDTClassifier(SCHEMA, epsilon="1", n_estimators=1, max_depth=1, random_state=1).public_plan()
    plan.save(tmp_path / "plan.json")
    tokens(tmp_path, clinics)
    said = Three(tmp_path, clinics, plan).run("--disjoint")
    assert [f"{clinic.page}: about" in said for clinic in clinics] == [False, True]
    assert "noise alone may make as many" in said


@pytest.mark.slow
def test_not_stated_to_be_disjoint_the_losses_add(three: Three) -> None:
    three.run()
    assert three.forest.certificate.epsilon == "1.5"


@pytest.mark.slow
def test_one_is_down_and_comes_back(three: Three, servers: Servers) -> None:
    """Nobody is charged while one is known to be away; what was charged before is fetched all the same."""
    servers.stop(three.clinics[1])
    said = three.run(code=2)
    assert f"{three.clinics[1].page}: the service cannot be reached" in said
    assert said.count("as another cannot take part. Nothing was spent") == 2
    assert "3 of 3 have not answered; nothing was merged. Nobody was asked to count, and this run has cost nothing" in said
    assert "Run the same command again to ask only" not in said
    assert (three.forests, len(three.kept), three.charges()) == ([], 0, [[]] * 3)
    three.run("--at-least", 2)
    assert (len(three.kept), three.charges()) == (2, [["0.5"], [], ["0.5"]])
    before = [file.read_bytes() for file in three.kept]
    three.kept[0].unlink()  # as if its answer had not come
    said = three.run("--force", code=2)
    assert (len(three.kept), three.charges()) == (2, [["0.5"], [], ["0.5"]])
    assert "1 of 3 have not answered; nothing was merged. What came is kept" in said
    assert "What came before is kept" in three.run("--force", code=2)
    servers.start(three.clinics[1])
    said = three.run("--disjoint", "--force")
    assert said.count("kept from an earlier run") == 2
    assert (three.charges(), set(before) < {file.read_bytes() for file in three.kept}) == ([["0.5"]] * 3, True)
    assert len(three.forest.certificate.parts) == 3


@pytest.mark.slow
def test_another_output_does_not_pay_again(three: Three) -> None:
    three.run(clinics=three.clinics[:2])
    other = ("-o", three.folder / "second.json")
    said = three.run(*other, code=2)
    assert "forest.federation holds requests on this plan that were sent to" in said
    assert "Nothing was spent" in said
    assert (three.charges(), (three.folder / "second.federation").exists()) == ([["0.5"], ["0.5"], []], False)
    three.run(*other, "--folder", three.folder / "forest.federation")
    assert three.charges() == [["0.5"]] * 3
    three.run(*other, "--again", "--force")
    assert three.charges() == [["0.5", "0.5"]] * 3
    three.run(*other, "--force")  # it has answers of its own now
    assert three.charges() == [["0.5", "0.5"]] * 3


@pytest.mark.slow
def test_one_refuses_and_the_others_are_enough(three: Three) -> None:
    three.clinics[2].curator.ledger.ceiling("visits", "0.25")
    said = three.run(code=2)
    assert "ε = 0.25 left" in said
    assert said.count("as another cannot take part. Nothing was spent. To do without the other") == 2
    assert "First put right what is said above" in said
    assert three.charges() == [[]] * 3
    for more in ((), ("--purpose", "research")):  # nor by the same command once more
        three.run(*more, code=2)
        assert three.charges() == [[]] * 3
    three.run("--at-least", 2)
    assert [part.owner for part in three.forest.certificate.parts] == ["Clinic A", "Clinic B"]
    three.clinics[2].curator.ledger.ceiling("visits", "1")
    three.run("--at-least", 2, "--force")
    assert len(three.forest.certificate.parts) == 3
    assert three.charges() == [["0.5"]] * 3


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["closed", "not granted", "another purpose", "no token"])
def test_reasons_in_words(three: Three, reason: str) -> None:
    curator, said = three.clinics[0].curator, ""
    if reason == "closed":
        curator.registry.close("visits", "the end")
        said = "The dataset is closed"
    elif reason == "not granted":
        curator.accounts.withdraw("ada", "visits", None)
        said = "There is no such thing here, or it is not granted to you. The list of datasets has those that you may use."
    elif reason == "another purpose":
        curator.accounts.grant("ada", "visits", ["care"])
        said = "it is granted for 'care', 'research'"
    else:
        curator.accounts.revoke(curator.accounts.tokens("ada")[0].id)
        said = "A valid token is needed"
    found = three.run(code=2)
    assert f"{three.clinics[0].page}: " in found
    assert said in found
    assert three.charges() == [[]] * 3
    if reason == "another purpose":
        three.run("--purpose", "research")
        assert three.charges() == [["0.5"]] * 3
        three.kept[0].unlink()
        assert "had this request before for another purpose" in three.run("--purpose", "care", "--force", code=2)
        three.run("--purpose", "research", "--force")
        assert three.charges() == [["0.5"]] * 3


@pytest.mark.slow
def test_another_schema_is_not_paid_for(three: Three, servers: Servers) -> None:
    other = Schema([Numeric("age", 0, 90), Categorical("smoker", ["no", "yes"])], Target("class", ["a", "b"]))
    three.clinics.append(servers.new("Clinic D", schema=other))
    tokens(three.folder, three.clinics)
    said = three.run(code=2)
    assert "its schema is not that of the plan" in said
    assert "this run has cost nothing" in said
    assert three.charges() == [[]] * 4


@pytest.mark.slow
def test_two_of_one_name_are_not_paid_for(three: Three, servers: Servers) -> None:
    three.clinics.append(servers.new("Clinic D", called="Clinic A"))
    tokens(three.folder, three.clinics)
    said = three.run(code=2)
    assert said.count("calls its owner 'Clinic A'") == 2
    assert three.charges() == [[]] * 4
    three.run(clinics=three.clinics[:3])
    assert "calls its owner 'Clinic A'" in three.run("--force", code=2)  # the name of a release that is kept counts too
    assert three.charges() == [["0.5"], ["0.5"], ["0.5"], []]


@pytest.mark.slow
def test_one_is_slow(three: Three, hold: Hold) -> None:
    go_on = hold("Clinic B")
    three.run(clinics=[three.clinics[0], three.clinics[2]])
    said = three.run("--timeout", 3, "--force", code=2)
    assert f"{three.clinics[1].page}: " in said
    assert "in time" in said
    assert len(three.kept) == 2
    go_on.set()
    three.run("--force")
    assert three.charges() == [["0.5"]] * 3  # its stored answer came back
    assert len(three.forest.certificate.parts) == 3


@pytest.mark.slow
def test_one_that_hangs_does_not_hold_up_the_others(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.remote.federation.CHECK_SECONDS", 10.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        page = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (three.folder / "tokens.txt").open("a") as file:
            file.write(f"{page} hrw_x\n")
        said = three.run(f"{page}/datasets/visits", "--at-least", 3)
    assert f"{page}/datasets/visits: it did not answer in time" in said
    assert len(three.forest.certificate.parts) == 3


@pytest.mark.slow
def test_killed_between_answers(three: Three, hold: Hold) -> None:
    """Whenever it is killed, the next run goes on with the same keys, and each curator is paid once."""
    events = [hold(f"Clinic {name}") for name in "BC"]
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    with subprocess.Popen([sys.executable, "-m", "hedgerow", *three.words()], env=environment, stdout=subprocess.PIPE) as process:
        wait_until(lambda: len(three.kept) == 1 and all(three.charges()))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    keys = {each["key"] for each in state(three)["curators"]}
    assert (len(keys), three.charges()) == (3, [["0.5"]] * 3)
    events[0].set()
    with subprocess.Popen([sys.executable, "-m", "hedgerow", *three.words()], env=environment, stdout=subprocess.PIPE) as process:
        wait_until(lambda: len(three.kept) == 2)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    events[1].set()
    three.run("--disjoint")
    assert {each["key"] for each in state(three)["curators"]} == keys
    assert three.charges() == [["0.5"]] * 3
    assert (three.forest.certificate.epsilon, len(three.forest.certificate.parts)) == ("0.5", 3)
    for clinic in three.clinics:
        assert (clinic.curator.ledger.verify().sound, clinic.curator.ledger.unsettled()) == (True, [])


@pytest.mark.slow
def test_counts_that_failed_over_the_rows_are_paid_again(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was stored, so there is no answer to send again: the next run takes a new key, and pays a second time."""

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("row 17 holds 57.3")

    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.engines.streamed.StreamedRows._pass", fails)
        said = three.run(clinics=three.clinics[:1], code=2)
    assert "could not be ended; its owner can see why. It has cost ε = 0.5" in said
    assert "57.3" not in said
    three.run(clinics=three.clinics[:1])
    assert three.charges() == [["0.5", "0.5"], [], []]
    assert three.clinics[0].curator.ledger.balance("visits").spent == 1


def state(three: Three) -> Any:
    return json.loads((three.folder / "forest.federation" / "federation.json").read_text())


@pytest.mark.slow
def test_the_keys_are_written_before_anybody_is_asked(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    from hedgerow.remote.transport import Transport

    seen: list[set[str]] = []
    real = Transport.bytes

    def watched(self: Transport, method: str, path: str, *given: Any, **how: Any) -> bytes:
        written = {each["url"]: each["key"] for each in state(three)["curators"]}
        seen.append(set(written))
        assert how.get("key") in (None, *written.values())
        return real(self, method, path, *given, **how)

    monkeypatch.setattr(Transport, "bytes", watched)
    three.run()
    assert {frozenset(urls) for urls in seen} == {frozenset(clinic.page for clinic in three.clinics)}


@pytest.mark.slow
def test_another_plan_needs_another_folder(three: Three) -> None:
    three.run()
    HedgerowClassifier(SCHEMA, epsilon="0.25").public_plan(tables=3).save(three.folder / "plan.json")
    assert "belongs to another plan" in three.run("--force", code=2)
    assert three.charges() == [["0.5"]] * 3
    three.run("--force", "--folder", three.folder / "second")
    assert three.charges() == [["0.5", "0.25"]] * 3
    assert three.forest.certificate.epsilon == "0.75"


@pytest.mark.slow
def test_a_kept_answer_that_was_damaged_is_fetched_again(three: Three) -> None:
    three.run()
    whole = three.kept[0].read_bytes()
    three.kept[0].write_bytes(whole[:-50])
    three.run("--force")
    assert three.kept[0].read_bytes() == whole
    assert three.charges() == [["0.5"]] * 3
    (three.folder / "forest.federation" / "federation.json").write_text("{}")
    assert "expected what an earlier run wrote" in three.run("--force", code=2)


@pytest.mark.slow
def test_one_command_at_a_time(three: Three) -> None:
    import fcntl

    three.run()
    with (three.folder / "forest.federation" / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "in use by another command" in three.run("--force", code=2)


def test_tokens_that_others_can_read_are_refused(three: Three) -> None:
    for mode in (0o640, 0o604, 0o620):
        (three.folder / "tokens.txt").chmod(mode)
        said = three.run(code=2)
        assert "chmod 600" in said
        assert not any(clinic.ada in said for clinic in three.clinics)
    assert three.charges() == [[]] * 3


@pytest.mark.slow
def test_tokens_go_to_their_own_service_alone(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    file = three.folder / "tokens.txt"
    file.write_text(f"{three.clinics[0].url} {three.clinics[0].ada}\n{three.clinics[1].url[:-1]} {three.clinics[1].ada}\n")
    said = three.run(code=2)
    assert f"no token for {three.clinics[1].page}, {three.clinics[2].page}" in said
    file.write_text("only one word\n")
    assert "line 1" in three.run(code=2)
    pages = [clinic.page for clinic in three.clinics]
    command = ["--plan", str(three.folder / "plan.json"), "-o", str(three.folder / "one.json")]
    monkeypatch.setenv("HEDGEROW_TOKEN", three.clinics[0].ada)
    several = CliRunner().invoke(app, ["federate", *pages, *command])
    assert (several.exit_code, "each would see the token of another" in several.output.replace("\n", " ")) == (2, True)
    assert three.charges() == [[]] * 3
    assert CliRunner().invoke(app, ["federate", pages[0], *command]).exit_code == 0
    monkeypatch.delenv("HEDGEROW_TOKEN")
    assert "got none" in CliRunner().invoke(app, ["federate", pages[0], *command, "--force"]).output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["https://a.example/visits"], "a dataset's page"), (["http://a.example/datasets/visits"], "could be read on its way"),
        (["https://a.example/datasets/v", "https://a.example/datasets/v/"], "given twice"), (["https://a.example/datasets/"], "page"),
        (["https://a.example/datasets/v", "--at-least", "2"], "at most 1"),
    ],
)  # fmt: skip
def test_refused_at_once(tmp_path: Path, words: list[str], said: str) -> None:
    HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan().save(tmp_path / "plan.json")
    command = ["federate", *words, "--plan", str(tmp_path / "plan.json"), "-o", str(tmp_path / "forest.json")]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "250"})
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("name", [" ", "a\nb", "x" * 201])
def test_a_service_has_a_name_that_a_release_can_hold(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "new"), "--name", name])
    assert (done.exit_code, "name" in done.output, (tmp_path / "new").exists()) == (2, True, False)


@pytest.mark.slow
def test_a_large_epsilon_must_be_repeated(three: Three) -> None:
    HedgerowClassifier(SCHEMA, epsilon=11).public_plan().save(three.folder / "plan.json")
    for clinic in three.clinics:
        clinic.curator.ledger.ceiling("visits", 20)
    assert "hardly at all" in three.run(code=2)
    assert three.charges() == [[]] * 3
    three.run("--epsilon", 11, "--disjoint")
    assert three.forest.certificate.epsilon == "11"


# ---------------------------------------------------------------- a service that sends something wrong


class Strange(ThreadingHTTPServer):
    """Answers as a curator would, but for its release."""

    release = b""
    daemon_threads = True


class Handler(BaseHTTPRequestHandler):
    server: Strange

    def log_message(self, *_: Any) -> None:
        """Nothing is said."""

    def do_GET(self) -> None:
        if "/releases/" in self.path:
            self._send(self.server.release)
        elif "/jobs/" in self.path:
            self._send(json.dumps(JOB).encode())
        else:
            left = {"remaining": {"epsilon": "1", "delta": "0"}}
            about = {"name": "visits", "closed": False, "purposes": {"x": left}, "owner": "Strange", "schema": SCHEMA.to_toml()}
            self._send(json.dumps(about).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(json.dumps(JOB).encode())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


JOB = {
    "id": "j", "dataset": "visits", "purpose": "x", "what": "count", "cost": {"epsilon": "0.5", "delta": "0"}, "state": "done",
    "share": 1.0, "result": "/v1/releases/j",
}  # fmt: skip


def counted(plan: PublicPlan, **how: Any) -> bytes:
    rows = {"age": [1, 50, 80], "smoker": ["no", "yes", "no"]}
    return hedgerow.count(plan, rows, ["a", "b", "a"], **how).to_json()


@pytest.mark.slow
def test_wrong_releases_are_not_merged(three: Three) -> None:
    other = HedgerowClassifier(SCHEMA, epsilon="0.5", bins=7).public_plan(rows=1000, tables=3)
    weaker = HedgerowClassifier(SCHEMA, epsilon="0.75").public_plan(rows=1000, tables=3)
    two = hedgerow.merge([Release.from_json(counted(three.plan, owner=name)) for name in "xy"])
    wrong = {
        b"": "sound", b"{}": "sound", b"[" * 100_000: "sound", counted(three.plan)[:-9]: "sound", counted(other): "bins",
        counted(weaker): "ε = 0.75, and the plan says ε = 0.5", two.to_json(): "one table",
    }  # fmt: skip
    server = Strange(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        page = f"http://127.0.0.1:{server.server_port}"
        with (three.folder / "tokens.txt").open("a") as file:
            file.write(f"{page} hrw_x\n")
        three.clinics = three.clinics[:1]
        for content, said in wrong.items():
            server.release = content
            found = three.run(f"{page}/datasets/visits", code=2)
            assert said in found, found
            assert f"{page}/datasets/visits: " in found
            assert len(three.kept) == 1
        server.release = counted(three.plan, owner="z")
        three.run(f"{page}/datasets/visits")
    finally:
        server.shutdown()
        server.server_close()
    assert [part.owner for part in three.forest.certificate.parts] == ["Clinic A", "z"]


def test_differences() -> None:
    plan = HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(rows=1000)
    assert differences(Release.from_json(counted(plan)), plan) == ""
    assert "ε" in differences(Release.from_json(counted(plan)), HedgerowClassifier(SCHEMA, epsilon=1).public_plan(rows=1000))


@pytest.mark.slow
def test_answers_that_are_signed(three: Three) -> None:
    """Nothing is paid to who signs with another key or not at all; what came and is not signed is not merged."""
    keys = [make_key(clinic.curator.releases.parent / KEY_FILE, clinic.name) for clinic in three.clinics[:2]]
    trust = three.folder / "trust"
    trust.mkdir()
    (trust / "a.pub").write_text(f"{keys[0].text} a\n")
    assert "no key is trusted" in three.run("--require-signed", code=2)
    said = three.run("--require-signed", "--trust", trust, code=2)
    assert f"it signs with {keys[1].fingerprint}, which is not trusted. Nothing was spent" in said
    assert "it signs nothing" in said
    assert three.charges() == [[]] * 3
    (trust / "b.pub").write_text(f"{keys[1].text} b\n")
    three.run("--require-signed", "--trust", trust, "--disjoint", clinics=three.clinics[:2])
    assert [part.signed_by for part in three.forest.certificate.parts] == [[key.text] for key in keys]
    (trust / "b.pub").unlink()
    said = three.run("--require-signed", "--trust", trust, "--force", clinics=three.clinics[:2], code=2)
    assert "is not signed with a trusted key" in said


@pytest.mark.slow
def test_two_datasets_of_one_service_have_its_key(servers: Servers, tmp_path: Path) -> None:
    """Whoever asks names both, and states that nobody is in both: that one key has signed them is no surprise."""
    clinic = servers.new("both", called="")
    curator = clinic.curator
    make_key(curator.releases.parent / KEY_FILE, "both")
    curator.registry.register("stays", curator.releases.parent / "visits.csv", SCHEMA)
    curator.ledger.ceiling("stays", "2")
    curator.accounts.grant("ada", "stays", ["research"])
    plan = HedgerowClassifier(SCHEMA, epsilon="0.5").public_plan(rows=1000, tables=2)
    plan.save(tmp_path / "plan.json")
    tokens(tmp_path, [clinic])
    Three(tmp_path, [clinic], plan).run(f"{clinic.url}/datasets/stays", "--disjoint")
    parts = Release.load(tmp_path / "forest.json").certificate.parts
    assert [part.owner for part in parts] == ["stays", "visits"]
    assert parts[0].signed_by == parts[1].signed_by == [curator.signed_with]


@pytest.mark.slow
def test_what_a_service_has_refused_was_not_sent(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else, with another away, the next run would take it for a request that is paid for already, and charge it."""

    def refused(*_: Any, **__: Any) -> None:
        raise BudgetError("somebody was quicker")

    def sent() -> list[bool]:
        (state,) = three.folder.glob("*.federation/federation.json")
        return [each["sent"] for each in json.loads(state.read_text())["curators"]]

    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.remote.connection.Connection.counts", refused)
        three.run(code=2)
    assert (sent(), three.charges()) == ([False] * 3, [[]] * 3)

    def busy(*_: Any, **__: Any) -> None:
        raise CuratorError("busy", 429, "many")

    with monkeypatch.context() as patch:
        patch.setattr("hedgerow.remote.connection.Connection.counts", busy)
        three.run(code=2)
    assert sent() == [True] * 3  # it may have come twice, and have been taken the first time
    three.run()
    assert three.charges() == [["0.5"]] * 3
