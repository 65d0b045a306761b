"""URLs of datasets, and the tokens for them: in a file that nobody else can read, each for one service."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from hedgerow.errors import CuratorError
from hedgerow.remote.transport import checked_address

TOKEN = "HEDGEROW_TOKEN"
PAGES = "/datasets/"
WRITE = "Put a line for each service into a file, such as 'https://clinic-a.example hrw_…', and give it with --tokens."


@dataclass(frozen=True)
class Place:
    """One dataset at one service. url: of its page, as it was given."""

    url: str
    service: str
    dataset: str


def place_of(url: str) -> Place:
    """https://clinic-a.example/datasets/visits: the service at https://clinic-a.example, its dataset visits."""
    service, pages, name = url.rstrip("/").rpartition(PAGES)
    dataset = unquote(name)
    if not pages or not service or not dataset.strip() or "/" in name:
        raise CuratorError(
            f"address: got {url!r:.200}; expected that of a dataset's page, such as https://clinic-a.example/datasets/visits."
        )
    return Place(url, checked_address(service), dataset)


def source_of(service: str, dataset: str) -> str:
    """A hash of an address, by which a release knows the same table again and which tells nobody where it is."""
    return hashlib.sha256(f"{service}{PAGES}{dataset}".encode()).hexdigest()[:32]


def places_of(urls: Iterable[str]) -> tuple[Place, ...]:
    """Each once: the same table cannot be counted twice."""
    found = tuple(map(place_of, urls))
    known: dict[tuple[str, str], str] = {}
    for place in found:
        if (place.service, place.dataset) in known:
            raise CuratorError(f"address: {place.url!r:.200} is given twice. The same rows cannot be counted twice: leave one out.")
        known[place.service, place.dataset] = place.url
    return found


def token_for(place: Place, environment: Mapping[str, str]) -> str:
    """The token of one service, from the environment."""
    token = environment.get(TOKEN, "").strip()
    if not token:
        raise CuratorError(f"{TOKEN}: this variable is not set; expected your token for {place.service}: export {TOKEN}=hrw_…")
    return token


def tokens_for(places: Iterable[Place], file: Path | None, environment: Mapping[str, str]) -> dict[Place, str]:
    """The token of each place. One from the environment is for one service: shown to another, its owner could use it."""
    wanted = tuple(places)
    if file is None:
        token = environment.get(TOKEN, "").strip()
        if not token:
            raise CuratorError(f"tokens: got none. {WRITE} For one service, the variable {TOKEN} will do.")
        if len({place.service for place in wanted}) > 1:
            raise CuratorError(f"{TOKEN} holds one token, and there are several services: each would see the token of another. " + WRITE)
        return dict.fromkeys(wanted, token)
    lines = _lines(file)
    found = {place: _longest(place.url, lines) for place in wanted}
    without = [place.url for place, token in found.items() if token is None]
    if without:
        raise CuratorError(f"{file}: it has no token for {', '.join(without[:5])}. Add a line with its address and its token.")
    return {place: token for place, token in found.items() if token is not None}


def _lines(file: Path) -> list[tuple[str, str]]:
    """Pairs of an address and a token; never repeated in a message."""
    try:
        with file.open(encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise CuratorError(
                    f"{file}: others on this machine can read or change it (mode {stat.S_IMODE(mode):o}), and whoever has a token can "
                    f"spend with it. Run `chmod 600 {file}`; if others may have seen it, ask for new tokens."
                )
            text = stream.read(1 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise CuratorError(f"{file}: it cannot be read ({getattr(error, 'strerror', None) or 'not text'}).") from None
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or "://" not in words[0]:
            raise CuratorError(f"{file}, line {number}: expected an address and a token, such as 'https://clinic-a.example hrw_…'.")
        found.append((words[0].rstrip("/"), words[1]))
    return found


def _longest(url: str, lines: Iterable[tuple[str, str]]) -> str | None:
    """The token of the longest address that the url begins with, part by part: clinic-a.example is not clinic-a.example.org."""
    fitting = [(len(prefix), token) for prefix, token in lines if url == prefix or url.startswith(prefix + "/")]
    return max(fitting)[1] if fitting else None
