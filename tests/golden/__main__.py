"""Write the golden bytes anew: `python -m tests.golden --write`, from the top folder.

Only where a release, a plan or a request is meant to change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .cases import (
    CASES,
    EXPECTED,
    PLANS,
    TABLES,
    all_as_today,
    all_predictions,
    counted_plan,
    owners,
    scores,
    united,
    versions,
)
from .session import recorded

REFUSED = """Nothing was written. `python -m tests.golden --write` replaces the golden bytes by those of today, so that the tests accept
whatever the code does now. Say --write if releases, plans or requests are meant to change."""


def write() -> list[str]:
    """The names of the files that have changed."""
    before = {path: path.read_bytes() for path in EXPECTED.glob("**/*") if path.is_file()}
    for path in before:
        path.unlink()

    def put(name: str, data: bytes) -> None:
        (EXPECTED / name).parent.mkdir(parents=True, exist_ok=True)
        (EXPECTED / name).write_bytes(data)

    put("versions.json", json.dumps(versions()).encode() + b"\n")
    for name, case in CASES.items():
        put(f"releases/{name}.json", case.bytes(TABLES[case.table]))
    for group in [*map(owners, PLANS), united()]:
        for name, data in group.items():
            put(f"owners/{name}.json", data)
    # What follows is asked of the files above.
    put("owners/rdt-north.json", counted_plan(TABLES["flat"]))
    put("scores.json", scores(TABLES["flat"], TABLES["persons"]))
    put("predictions.json", all_predictions())
    put("old.json", all_as_today())
    with TemporaryDirectory() as folder:
        put("session.jsonl", "".join(each.line() for each in recorded(Path(folder))).encode())
    after = {path: path.read_bytes() for path in EXPECTED.glob("**/*") if path.is_file()}
    return sorted(path.relative_to(EXPECTED).as_posix() for path in before.keys() | after if before.get(path) != after.get(path))


def main(arguments: list[str]) -> int:
    if arguments != ["--write"]:
        print(REFUSED, file=sys.stderr)
        return 2
    changed = write()
    print("\n".join(changed) if changed else "nothing has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
