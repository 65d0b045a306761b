"""The reference of the package: every name of `hedgerow.__all__` on the page of its room, and the packages that users import from."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import hedgerow

ROOMS = {  # page of a room: its title, and what its names return or take
    "estimators": ("Estimators", []),
    "schema": ("Schemas", []),
    "accounting": ("Budgets", []),
    "release": (
        "Releases and plans",
        ["hedgerow.release.certificate.Certificate", "hedgerow.release.parts.Part", "hedgerow.trees.plan.Plan"],
    ),
    "evaluation": (
        "Scores",
        [
            "hedgerow.evaluation.score.PrivateScore",
            "hedgerow.inference.calibration.Calibration",
            "hedgerow.inference.ranking.OperatingPoint",
        ],
    ),
    "engines": ("Tables", ["hedgerow.private_table.PrivateTable"]),
    "training": ("Counting", []),
    "sharing": ("Sharing models", []),
    "remote": (
        "The owner's service",
        [
            "hedgerow.remote.connection.Connection",
            "hedgerow.remote.jobs.Job",
            "hedgerow.remote.owner.Owner",
            "hedgerow.remote.remote_table.RemoteTable",
            "hedgerow.remote.responses",
            "hedgerow.remote.federation.Federation",
        ],
    ),
    "multiparty": ("Owners together", []),
    "inference": (
        "What a release says",
        ["hedgerow.inference.effects.Effect", "hedgerow.inference.explain.Explanation", "hedgerow.inference.rules.Rule"],
    ),
}
PACKAGES = {  # imported by their own names: each with `__all__`, or the whole module
    "hedgerow.audit": "Audit",
    "hedgerow.datasets": "Data sets",
    "hedgerow.queries": "Private queries",
    "hedgerow.errors": "Errors and warnings",
}


def public_names() -> Iterator[str]:
    """What the reference must have, as `hedgerow.Budget` or `hedgerow.audit.audit`."""
    yield from (f"hedgerow.{name}" for name in hedgerow.__all__ if name != "__version__")
    for package in PACKAGES:
        module = import_module(package)
        names = getattr(module, "__all__", None) or [name for name, thing in vars(module).items() if isinstance(thing, type)]
        yield from (f"{package}.{name}" for name in names)


def _rooms() -> dict[str, list[str]]:
    """The public names by the room that they live in; a room without a title here is called by its name."""
    found: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name, home in hedgerow._HOME.items():
        found.setdefault(home.split(".")[1], []).append(name)
    return found


def _title(room: str) -> str:
    return ROOMS.get(room, (room.capitalize(), []))[0]


def nav() -> list[dict[str, str] | str]:
    rooms: list[dict[str, str] | str] = ["reference/python/index.md"]
    rooms += [{_title(room): f"reference/python/{room}.md"} for room in _rooms()]
    return rooms + [{title: f"reference/python/{package.split('.')[1]}.md"} for package, title in PACKAGES.items()]


def pages() -> dict[str, str]:
    made, listed = {}, ["# Python reference\n\n| name | what it is |\n| --- | --- |\n"]
    for room, names in _rooms().items():
        also = ROOMS.get(room, ("", []))[1]
        blocks = [f"::: hedgerow.{name}\n" for name in sorted(names)]
        blocks += [f"::: {path}\n" for path in also]
        made[f"reference/python/{room}.md"] = f"# {_title(room)}\n\n" + "\n".join(blocks)
        listed += [f"| [`{name}`]({room}.md#hedgerow.{name}) | {_first_line(f'hedgerow.{name}')} |\n" for name in sorted(names)]
    for package, title in PACKAGES.items():
        page = package.split(".")[1]
        names = sorted(name for name in public_names() if name.rpartition(".")[0] == package)
        made[f"reference/python/{page}.md"] = f"# {title}: `{package}`\n\n" + "\n".join(f"::: {name}\n" for name in names)
        listed += [f"| [`{name}`]({page}.md#{name}) | {_first_line(name)} |\n" for name in names]
    made["reference/python/index.md"] = "".join(listed)
    return made


def _first_line(path: str) -> str:
    module, _, name = path.rpartition(".")
    thing = getattr(import_module(module), name)
    text = (thing.__doc__ or "").strip() if isinstance(thing, type) or callable(thing) else ""
    return text.split("\n\n")[0].split("\n")[0].replace("|", "\\|")
