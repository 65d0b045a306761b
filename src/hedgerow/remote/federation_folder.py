"""State of a federation between runs, in a folder: the plan, the request key of each curator, and the releases that came.

The keys are on disk before the first request is sent, so that whatever happens later, the same request is sent again and never another.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hedgerow.errors import CuratorError, ReleaseError
from hedgerow.release.files import read_document, write_document
from hedgerow.release.release import Release
from hedgerow.remote.places import Place, place_of

FOLDER, STATE, LOCK = ".federation", "federation.json", "lock"
FORMAT, VERSION = "hedgerow-federation", 1


class CuratorRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The request to one curator.

    purpose: "" until it is known; file: where its release is kept, when it is there; sent: the curator may have it, and have charged it
    """

    url: str
    key: str
    file: str
    purpose: str = ""
    sent: bool = True


class State(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """plan: its content hash; together: the name of the run, where the curators count together."""

    format: str
    version: int
    plan: str
    curators: list[CuratorRequest]
    together: str = ""


class Folder:
    """Opened for one plan; another plan has another folder."""

    def __init__(self, path: Path, state: State) -> None:
        self.path, self.state = path, state
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path, plan: str, places: Iterable[Place], purpose: str | None, together: bool = False) -> Iterator[Folder]:
        """The folder, new if there is none; no other command works in it meanwhile."""
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            lock = (path / LOCK).open("a")
        except OSError as error:
            raise CuratorError(f"folder {str(path)!r} cannot be used ({error.strerror}); expected one that can be written.") from None
        with lock:
            _lock(lock.fileno(), path)
            folder = cls(path, _state(path / STATE, plan))
            if folder.state.curators and bool(folder.state.together) != together:
                raise CuratorError(
                    f"folder {str(path)!r} holds requests that were {'' if folder.state.together else 'not '}made with --together, and "
                    "this one is another. Take another folder: --folder."
                )
            if together and not folder.state.together:
                folder.state.together = uuid.uuid4().hex
            folder._begin(places, purpose)
            yield folder

    def _begin(self, places: Iterable[Place], purpose: str | None) -> None:
        known = {request.url for request in self.state.curators}
        for place in places:
            if place.url not in known:
                name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{place.service.partition('://')[2]}-{place.dataset}")[:80]
                file = f"{len(self.state.curators) + 1}-{name}.json"
                self.state.curators.append(CuratorRequest(place.url, str(uuid.uuid4()), file, sent=False))
            request = self.request(place)
            request.purpose = purpose or request.purpose  # where the key has an answer for another purpose, the curator refuses
        self.write()

    def write(self) -> None:
        """On disk when it returns."""
        write_document(self.path / STATE, msgspec.json.encode(self.state), "state")
        with contextlib.suppress(OSError):  # some systems cannot sync a folder
            handle = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def request(self, place: Place) -> CuratorRequest:
        return next(request for request in self.state.curators if request.url == place.url)

    def sending(self, place: Place) -> CuratorRequest:
        """The request, noted on disk as one that the curator may have."""
        with self._lock:
            self.request(place).sent = True
            self.write()
        return self.request(place)

    def not_taken(self, place: Place) -> None:
        """The curator has refused the request: it has not charged it."""
        with self._lock:
            self.request(place).sent = False
            self.write()

    def request_anew(self, place: Place) -> None:
        """The next request is another one, that is paid for by itself."""
        with self._lock:
            request = self.request(place)
            request.key, request.sent = str(uuid.uuid4()), False
            self.write()

    def begin_anew(self) -> None:
        """The next run of those who count together is another one."""
        with self._lock:
            self.state.together = uuid.uuid4().hex
            for request in self.state.curators:
                request.key, request.sent = str(uuid.uuid4()), False
            self.write()

    def file(self, place: Place) -> Path:
        return self.path / self.request(place).file

    def keep(self, place: Place, content: bytes) -> None:
        write_document(self.file(place), content)

    def kept(self, place: Place) -> Release | None:
        """The release that came, if it can be read."""
        if not self.file(place).exists():
            return None
        try:
            return Release.load(self.file(place))
        except ReleaseError:
            return None  # it is requested again, with the same key


def sent_elsewhere(path: Path, plan: str, places: Iterable[Place], together: bool) -> Iterator[tuple[Path, list[str]]]:
    """Other folders beside this one with requests on the same plan to the same datasets that were sent, where this one has sent none."""
    own = set(_sent(path, plan, together))
    wanted = {(place.service, place.dataset): place.url for place in places}
    for other in sorted(path.parent.glob(f"*{FOLDER}")):
        known = [wanted[each] for each in _sent(other, plan, together) if each in wanted.keys() - own]
        if other.resolve() != path.resolve() and known:
            yield other, known


def _sent(path: Path, plan: str, together: bool) -> list[tuple[str, str]]:
    """The datasets that have got a request on this plan; none where the folder cannot be read."""
    try:
        state = _state(path / STATE, plan)
        places = [place_of(request.url) for request in state.curators if request.sent and bool(state.together) == together]
        return [(place.service, place.dataset) for place in places]
    except CuratorError:  # of another plan, or not of this program
        return []


def _state(path: Path, plan: str) -> State:
    if not path.exists():
        return State(FORMAT, VERSION, plan, [])
    try:
        state = msgspec.json.decode(read_document(path, "state"), type=State)
    except (ReleaseError, msgspec.DecodeError, UnicodeDecodeError):
        state = State("", 0, "", [])
    unsound = any(Path(request.file).name != request.file or not request.key for request in state.curators)
    if (state.format, state.version) != (FORMAT, VERSION) or unsound:
        raise CuratorError(f"{path}: it cannot be read; expected what an earlier run wrote. Take another folder: --folder.")
    if state.plan != plan:
        raise CuratorError(
            f"folder {str(path.parent)!r} belongs to another plan ({state.plan[:12]}…, yours is {plan[:12]}…), and answers to two "
            "plans cannot be merged. Give that plan to go on with it, or take another folder: --folder."
        )
    return state


def _lock(handle: int, path: Path) -> None:
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ModuleNotFoundError:  # no such locks here
        pass
    except OSError:
        raise CuratorError(f"folder {str(path)!r} is in use by another command. Wait for it, then try again.") from None
