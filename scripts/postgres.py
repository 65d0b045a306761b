#!/usr/bin/env python3
"""A real PostgreSQL server for tests, of its own and gone afterwards. Needs nothing but Python and the server's programs.

    scripts/postgres.py run COMMAND …          HEDGEROW_POSTGRES=postgresql://… for the command; stopped and removed in every case
    scripts/postgres.py start [--folder F]     prints the address; says how to stop it
    scripts/postgres.py stop FOLDER            stops the server and removes the folder

It listens on the loopback only, on a free port, with a random password. PostgreSQL refuses to run as root, so root starts it
as the account `postgres` or `nobody`. Where the programs are missing, root installs Debian's package; others are told to.

--fsync: writes wait for the disk, as a ledger that must survive a crash needs it. Without it tests are faster.
"""

from __future__ import annotations

import argparse
import glob
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

MARK = "hedgerow-postgres"  # a file in every folder that is made here: no other folder is ever removed
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
TRIES = 5  # another program may take the free port first


class Server:
    """The server of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.programs = folder, folder / "data", programs()
        self.account = account()
        self.mine = False  # made by this process: what another one has started must not be removed when this one fails

    def start(self, fsync: bool) -> str:
        if self.folder.exists() and any(self.folder.iterdir()):
            raise SystemExit(f"folder {str(self.folder)!r}: expected an empty or a new one, since it is removed at the end.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.mine = True
        (self.folder / MARK).touch()
        password = secrets.token_hex(16)
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(password)
        for path in (self.folder, secret):
            if self.account:
                os.chown(path, self.account.pw_uid, self.account.pw_gid)
        self.folder.chmod(0o700)
        how = ["--username=hedgerow", "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C"]
        self._do("initdb", "-D", str(self.data), *how, *([] if fsync else ["--no-sync"]))
        for _ in range(TRIES):
            port = free_port()
            settings = {
                "listen_addresses": "127.0.0.1",
                "port": port,
                "unix_socket_directories": "",
                "max_connections": 200,
                "fsync": "on" if fsync else "off",
                "synchronous_commit": "on" if fsync else "off",
                "full_page_writes": "on" if fsync else "off",
            }
            options = " ".join(f"-c {name}={value}" if value != "" else f"-c {name}=''" for name, value in settings.items())
            log = str(self.folder / "log")
            if self._do("pg_ctl", "start", "-w", "-t", "60", "-D", str(self.data), "-l", log, "-o", options, must=False):
                return f"postgresql://hedgerow:{password}@127.0.0.1:{port}/postgres"
        text = (self.folder / "log").read_text(errors="replace") if (self.folder / "log").exists() else ""
        raise SystemExit(f"the server did not start:\n{text[-2000:]}")

    def stop(self) -> None:
        if not (self.folder / MARK).is_file():
            raise SystemExit(f"folder {str(self.folder)!r}: no server was started there by this script.")
        if (self.data / "postmaster.pid").exists():
            self._do("pg_ctl", "stop", "-w", "-t", "30", "-m", "immediate", "-D", str(self.data), must=False)
        shutil.rmtree(self.folder)

    def _do(self, program: str, *words: str, must: bool = True) -> bool:
        """Runs one of the server's programs as the account, in the folder, and apart from the signals of a terminal."""
        who: dict[str, Any] = {}
        if self.account:
            who = {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        with open(self.folder / "output", "w+") as output:  # not a pipe: the server would keep it open
            done = subprocess.run(
                [str(self.programs / program), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
                check=False,
                **who,
            )
            output.seek(0)
            if must and done.returncode:
                raise SystemExit(f"{program} failed:\n{output.read()[-2000:]}")
        return done.returncode == 0


def programs() -> Path:
    """The folder of the newest server's programs; installed if that is possible."""
    found = find_programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install()
        found = find_programs()
    if found is None:
        raise SystemExit(
            "PostgreSQL's programs initdb and pg_ctl are not on this machine. Install a server: `apt-get install postgresql` as root "
            "on Debian and Ubuntu, `brew install postgresql` on macOS."
        )
    return found


def find_programs() -> Path | None:
    folders = [Path(folder) for place in PLACES for folder in glob.glob(place)]
    on_path = shutil.which("initdb")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    complete = [folder for folder in folders if all((folder / program).is_file() for program in ("initdb", "pg_ctl", "postgres"))]
    return max(complete, key=version, default=None)


def version(folder: Path) -> tuple[int, ...]:
    text = subprocess.run([str(folder / "postgres"), "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def install() -> None:
    """Debian's package, without the server that it would make and start by itself."""
    print("installing the Debian package postgresql …", file=sys.stderr)
    setting = Path("/etc/postgresql-common/createcluster.d/hedgerow.conf")
    setting.parent.mkdir(parents=True, exist_ok=True)
    setting.write_text("create_main_cluster = false\n")
    try:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "postgresql"]):
            if subprocess.run(["apt-get", *words], env=environment, stdout=sys.stderr, check=False).returncode:
                raise SystemExit(f"`apt-get {' '.join(words)}` failed. Install PostgreSQL's server by hand.")
    finally:
        setting.unlink(missing_ok=True)


def account() -> pwd.struct_passwd | None:
    """The unprivileged account that the server runs as; None if that is the caller's own."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise SystemExit("there is no account `postgres` or `nobody`, and PostgreSQL refuses to run as root. Run this as another user.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(server: Server, fsync: bool, command: list[str]) -> int:
    """The command's exit code; 128 + the signal if one ended it. A signal to this script goes on to the command."""
    child: subprocess.Popen[bytes] | None = None
    ended_by = 0

    def pass_on(number: int, _: FrameType | None) -> None:
        nonlocal ended_by
        ended_by = number
        if child is not None and (number != signal.SIGINT or not sys.stdin.isatty()):  # a terminal sends Ctrl-C to the command, too
            child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    try:
        address = server.start(fsync)
        if ended_by:  # while it started
            return 128 + ended_by
        environment = {**os.environ, "HEDGEROW_POSTGRES": address, "HEDGEROW_POSTGRES_FOLDER": str(server.folder)}
        try:
            child = subprocess.Popen(command, env=environment)
        except OSError as error:
            raise SystemExit(f"{command[0]}: {error.strerror}") from None
        if ended_by:  # a signal that came before there was a child to pass it on to
            child.send_signal(ended_by)
        code = child.wait()
        return 128 + ended_by if ended_by else code if code >= 0 else 128 - code
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave a server behind
        if server.mine:
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("start", "run"):
        words = verbs.add_parser(verb)
        words.add_argument("--folder", type=Path, help="an empty or new folder for the server; made if not given")
        words.add_argument("--fsync", action="store_true", help="writes wait for the disk")
        if verb == "run":
            words.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND …")
    verbs.add_parser("stop").add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.verb == "stop":
        Server(given.folder.resolve()).stop()
        return 0
    command = [] if given.verb == "start" else given.command[1:] if given.command[:1] == ["--"] else given.command
    if given.verb == "run" and not command:
        parser.error("run: expected a command")
    server = Server(given.folder.resolve() if given.folder else Path(tempfile.gettempdir(), f"hedgerow-postgres-{secrets.token_hex(6)}"))
    if given.verb == "run":
        return run(server, given.fsync, command)
    try:
        print(server.start(given.fsync), flush=True)
    except BaseException:
        if server.mine:
            server.stop()
        raise
    print(f"stop it: {sys.argv[0]} stop {server.folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
