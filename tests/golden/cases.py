"""What has golden bytes: made-up tables, every estimator on them, owners who share a plan, scores; all with coins that are known."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import msgspec
import numpy as np
import pandas as pd

import hedgerow
from hedgerow import Categorical, Numeric, PublicPlan, Release, Schema, SQLTable, Target
from hedgerow.release.certificate import certificate_of

from .inside import anonymous, known_coins, with_test_coins

EXPECTED = Path(__file__).parent / "expected"
OLD = Path(__file__).parent.parent / "data"

# ---------------------------------------------------------------- tables, the same for all time


def drawn(name: str, rows: int, below: int) -> np.ndarray[Any, Any]:
    """Whole numbers from a hash: no generator's next version changes them."""
    return (np.frombuffer(hashlib.shake_256(f"golden {name}".encode()).digest(4 * rows), "<u4") % below).astype(np.int64)


def _flat(rows: int = 900) -> pd.DataFrame:
    """Undeclared, missing and extreme values; the class depends on colour and age."""
    colour = np.array(["red", "green", "blue", "pink"], dtype=object)[drawn("colour", rows, 4)]
    age = drawn("age", rows, 441) / 4 - 5
    risk = 100 * ((colour == "red") * 2 + (age > 50)) + drawn("risk", rows, 100)
    frame = pd.DataFrame(
        {
            "colour": colour,
            "flag": drawn("flag", rows, 2),
            "age": age,
            "shape": np.array(["round", "flat", ""], dtype=object)[drawn("shape", rows, 3)],
            "class": np.array(["no", "yes"], dtype=object)[(risk > 90).astype(int)],
            "note": "not declared",
        }
    )
    frame.loc[5, "class"] = "nobody declared this"
    frame.loc[7, "colour"] = None
    frame.loc[8, "age"] = np.nan
    return frame


def _persons() -> pd.DataFrame:
    """Up to a dozen rows of a person; some rows name nobody."""
    frame = _flat()
    frame["id"] = [f"p{number}" for number in drawn("id", len(frame), 220)]
    frame.loc[40:60, "id"] = None
    frame.loc[61:70, "id"] = ""
    return frame


def _wide(rows: int = 1500) -> pd.DataFrame:
    """Enough attributes for δ to be worth its while; two classes, and three."""
    frame = pd.DataFrame({f"a{i}": drawn(f"a{i}", rows, 3) for i in range(16)})
    sum_ = frame["a0"] + frame["a1"] + drawn("more", rows, 2)
    frame["class"] = np.array(["no", "yes"], dtype=object)[(sum_ > 2).astype(int)]
    frame["kind"] = np.array(["low", "mid", "high"], dtype=object)[np.clip(sum_ - 1, 0, 2)]
    frame["id"] = drawn("wide id", rows, 1000)
    return frame


TABLES = {"flat": _flat(), "persons": _persons(), "wide": _wide()}
FLAT = Schema(
    [
        Categorical("colour", ["red", "green", "blue"], other="other"),
        Categorical("flag", [0, 1]),
        Numeric("age", 0, 100),
        Categorical("shape", ["round", "flat"], missing="unknown"),
    ],
    Target("class", ["no", "yes"]),
)
PERSONS = replace(FLAT, person="id", rows_per_person=3)
WIDE = Schema([Categorical(f"a{i}", [0, 1, 2]) for i in range(16)], Target("class", ["no", "yes"]))
WIDE_PERSONS = replace(WIDE, person="id", rows_per_person=2)
KINDS = replace(WIDE, target=Target("kind", ["low", "mid", "high"]))


def in_csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def in_parquet(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_parquet(folder / "rows.parquet", row_group_size=200, index=False)
    return folder / "rows.parquet"


def in_duckdb(frame: pd.DataFrame, folder: Path) -> Any:
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute('CREATE TABLE "the rows" AS SELECT * FROM frame')
    return SQLTable(str(folder / "rows.duckdb"), table="the rows")


ENGINES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "memory": lambda frame, folder: frame,
    "csv": in_csv,
    "parquet": in_parquet,
    "duckdb": in_duckdb,
}

# ---------------------------------------------------------------- estimators


@dataclass(frozen=True)
class Case:
    """One release. table: which of `TABLES`; run: from an estimator and a place with that table to the release."""

    table: str
    make: Callable[[], Any]
    run: Callable[[Any, Any], Any] = lambda estimator, place: estimator.fit(place).release_

    def bytes(self, place: Any) -> bytes:
        with known_coins(11):
            release: Release = self.run(self.make(), place)
        return bytes(release.to_json())


def _tuned(estimator: Any, place: Any) -> Any:
    return estimator.tune(place, grid={"max_depth": [1, 3]}, share="0.3").release_


def _batches(estimator: Any, place: Any) -> Any:
    for batch in ("2026-01", "2026-02"):
        estimator.partial_fit(place, batch=batch, owner="clinic", disjoint=True, other_rows=True)
    release = estimator.release_
    parts = [msgspec.structs.replace(part, source=msgspec.UNSET) for part in release.certificate.parts]  # where the rows were
    release.certificate = certificate_of(parts)
    return release


def _confessed(estimator: Any, place: Any) -> Any:
    return with_test_coins(estimator, 12).fit(place).release_


def _anonymous(hits_only: bool = False) -> Callable[[Any, Any], Any]:
    return lambda estimator, place: anonymous(estimator.fit(place).release_, 40, hits_only)


def _hedgerow(schema: Schema, epsilon: Any, delta: Any = 0) -> Callable[[], Any]:
    return lambda: hedgerow.HedgerowClassifier(schema, epsilon, delta, random_state=1)


def _rdt(schema: Schema = FLAT, **more: Any) -> Callable[[], Any]:
    return lambda: hedgerow.PrivateRDTClassifier(schema, 1, **{"n_estimators": 4, "random_state": 1, **more})


def _snr(schema: Schema = FLAT, epsilon: Any = 2, **more: Any) -> Callable[[], Any]:
    return lambda: hedgerow.SNRForestClassifier(schema, epsilon, random_state=1, **more)


def _dpdf(schema: Schema = FLAT, epsilon: Any = 8, **more: Any) -> Callable[[], Any]:
    return lambda: hedgerow.DPDFClassifier(schema, epsilon, **{"n_estimators": 2, "max_depth": 3, "min_rows": 20, **more})


def _diffpid3(schema: Schema = FLAT, epsilon: Any = 8, **more: Any) -> Callable[[], Any]:
    return lambda: hedgerow.DiffPID3Classifier(schema, epsilon, **{"max_depth": 3, **more})


def _id3(schema: Schema = FLAT) -> Callable[[], Any]:
    return lambda: hedgerow.PrivateID3Classifier(schema, 8, max_depth=2)


def _not_pruned() -> Any:
    return hedgerow.LocalTreeClassifier(FLAT, confidence=None, max_depth=3, min_leaf=5)


CASES: dict[str, Case] = {
    "hedgerow": Case("flat", _hedgerow(FLAT, 1)),
    "hedgerow-small-epsilon": Case("flat", _hedgerow(FLAT, "1/20")),
    "hedgerow-large-epsilon": Case("flat", _hedgerow(FLAT, 40)),
    "hedgerow-declared-rows": Case("flat", _hedgerow(replace(FLAT, rows=900), 1)),
    "hedgerow-three-classes": Case("wide", _hedgerow(KINDS, 3)),
    "hedgerow-delta": Case("wide", _hedgerow(WIDE, 4, "1e-6")),
    "hedgerow-delta-three-classes": Case("wide", _hedgerow(KINDS, 8, "1e-6")),
    "hedgerow-delta-few-attributes": Case("flat", _hedgerow(FLAT, 2, "1e-6")),
    "hedgerow-persons": Case("persons", _hedgerow(PERSONS, 4)),
    "hedgerow-delta-persons": Case("wide", _hedgerow(WIDE_PERSONS, 8, "1e-6")),
    "snr": Case("flat", _snr()),
    "snr-literal": Case("flat", _snr(stopping_rule="literal")),
    "snr-tight": Case("flat", _snr(noise_rule="tight")),
    "snr-declared-rows": Case("flat", _snr(replace(FLAT, rows=900))),
    "snr-persons": Case("persons", _snr(PERSONS, 4)),
    "rdt": Case("flat", _rdt()),
    "rdt-thresholds": Case("flat", _rdt(max_depth=2, numeric_splits="thresholds")),
    "rdt-three-classes": Case("wide", _rdt(KINDS, max_depth=2)),
    "rdt-persons": Case("persons", _rdt(PERSONS)),
    "rdt-batches": Case("flat", _rdt(max_depth=2), _batches),
    "rdt-persons-batches": Case("persons", _rdt(PERSONS, max_depth=2), _batches),
    "rdt-confessed": Case("flat", _rdt(max_depth=2), _confessed),
    "dpdf": Case("flat", _dpdf()),
    "dpdf-majority": Case("flat", _dpdf(vote="majority")),
    "dpdf-sum": Case("flat", _dpdf(vote="sum")),
    "dpdf-local-sensitivity": Case("flat", _dpdf(sensitivity="local")),
    "dpdf-small-epsilon": Case("flat", _dpdf(epsilon="1/2", min_rows=1)),
    "dpdf-three-classes": Case("wide", _dpdf(KINDS, 1, min_rows=1)),
    "dpdf-persons": Case("persons", _dpdf(PERSONS)),
    "dpdf-tuned": Case("flat", _dpdf(), _tuned),
    "diffpid3": Case("flat", _diffpid3()),
    "diffpid3-max": Case("flat", _diffpid3(criterion="max")),
    "diffpid3-gain": Case("flat", _diffpid3(criterion="information_gain", most_rows=5000)),
    "diffpid3-half": Case("flat", _diffpid3(criterion="gini_half")),
    "diffpid3-three-classes": Case("wide", _diffpid3(KINDS, 2, max_depth=4)),
    "diffpid3-persons": Case("persons", _diffpid3(PERSONS)),
    "private-id3": Case("flat", _id3()),
    "private-id3-as-published": Case("flat", lambda: hedgerow.PrivateID3Classifier(FLAT, 8, 2, as_published=True)),
    "private-id3-persons": Case("persons", _id3(PERSONS)),
    "plain-rdt": Case("flat", lambda: hedgerow.RandomDecisionTreesClassifier(4, schema=FLAT, random_state=1)),
    "plain-rdt-not-pruned": Case("flat", lambda: hedgerow.RandomDecisionTreesClassifier(2, 2, prune=False, schema=FLAT, random_state=1)),
    "id3": Case("flat", lambda: hedgerow.ID3Classifier(3, schema=FLAT)),
    "local-tree": Case("flat", lambda: hedgerow.LocalTreeClassifier(FLAT)),
    "local-tree-not-pruned": Case("flat", _not_pruned),
    "local-tree-persons": Case("persons", lambda: hedgerow.LocalTreeClassifier(PERSONS)),
    "anonymous": Case("flat", _not_pruned, _anonymous()),
    "anonymous-by-hits": Case("flat", _not_pruned, _anonymous(hits_only=True)),
}

# ---------------------------------------------------------------- owners

PLANS: dict[str, Callable[[], Any]] = {"hedgerow": _hedgerow(FLAT, "1/2"), "rdt": _rdt(max_depth=2), "snr": _snr(PERSONS)}


def _saved(document: Any) -> bytes:
    with TemporaryDirectory() as folder:
        document.save(Path(folder) / "document.json")
        return (Path(folder) / "document.json").read_bytes()


def owners(plan: str) -> dict[str, bytes]:
    """A shared plan, one count of it by each of two owners, and their merges, stated to be disjoint and not: the files by name."""
    table = TABLES["persons" if plan == "snr" else "flat"]
    with known_coins(13):
        shared = PLANS[plan]().public_plan(rows=900, tables=2)
        east = hedgerow.count(shared, table[:500], owner="east", batch="2026", disjoint=True)
        west = hedgerow.count(shared, table[500:], owner="west")  # without a batch: it gets a random name
        documents = {
            "plan": shared,
            "east": east,
            "west": west,
            "rows": hedgerow.merge([east, west]),
            "rows-disjoint": hedgerow.merge([east, west], disjoint=True),
        }
        return {f"{plan}-{name}": _saved(document) for name, document in documents.items()}


def united() -> dict[str, bytes]:
    """Two owners with different columns of the same persons, and their merge."""
    flat, files = TABLES["flat"], {}
    halves = {"registry": ("colour", "flag"), "clinic": ("age", "shape")}
    for number, (owner, names) in enumerate(halves.items()):
        schema = replace(FLAT, attributes=tuple(each for each in FLAT.attributes if each.name in names))
        with known_coins(14 + number):
            estimator = hedgerow.PrivateRDTClassifier(schema, "1/2", 3, 1, random_state=number)
            files[owner] = estimator.partial_fit(flat[[*names, "class"]], batch="2026", owner=owner).release_
    files["columns"] = hedgerow.merge_columns(list(files.values()))
    return {name: _saved(release) for name, release in files.items()}


def counted_plan(place: Any) -> bytes:
    """A release that counts a golden plan at another place than a data frame."""
    with known_coins(15):
        plan = PublicPlan.from_json((EXPECTED / "owners" / "rdt-plan.json").read_bytes())
        return bytes(hedgerow.count(plan, place, owner="north", batch="2026").to_json())


# ---------------------------------------------------------------- scores


def scores(place: Any, persons: Any) -> bytes:
    """A private score and a private calibration of golden releases, with their certificates."""
    found: dict[str, Any] = {}
    with known_coins(16):
        for name, rows in (("rdt", place), ("hedgerow", place), ("dpdf-persons", persons)):
            release = Release.from_json((EXPECTED / "releases" / f"{name}.json").read_bytes())
            score = hedgerow.private_score(release, rows, epsilon="1/2")
            shares = hedgerow.private_calibration(release, rows, epsilon="1/3", bins=4)
            found[name] = {
                "confusion": score.confusion.tolist(),
                "undeclared": score.undeclared,
                "noise_scale": str(score.noise_scale),
                "certificate": msgspec.to_builtins(score.certificate),
                "counts": np.asarray(shares.counts).tolist(),
                "calibration_certificate": msgspec.to_builtins(shares.certificate),
            }
    return _lines(found)


# ---------------------------------------------------------------- predictions


def hexed(numbers: np.ndarray[Any, Any]) -> list[str]:
    """Each row exactly, as text."""
    return [" ".join(float(number).hex() for number in row) for row in numbers]


def predictions(release: Release) -> dict[str, list[str]]:
    """Probabilities for rows of codes, those without a branch included, and for rows of values."""
    sizes = release.codebook.sizes
    codes = [[(row * (3 * j + 2) + row // 3) % (size + 1) for j, size in enumerate(sizes)] for row in range(16)]
    table = TABLES["flat" if "colour" in release.schema.names or "age" in release.schema.names else "wide"]
    return {
        "codes": hexed(release.predict_codes_proba(np.array(codes, dtype=release.codebook.dtype))),
        "rows": hexed(release.predict_proba(table[:16][list(release.schema.names)])),
    }


def golden_releases() -> dict[str, Path]:
    """Every golden file that is a release."""
    found = sorted([*EXPECTED.glob("releases/*.json"), *EXPECTED.glob("owners/*.json")])
    return {path.relative_to(EXPECTED).as_posix(): path for path in found if not path.stem.endswith("-plan")}


def all_predictions() -> bytes:
    """Of the golden releases, as they are loaded today."""
    return _lines({name: predictions(Release.load(path)) for name, path in golden_releases().items()})


def _lines(found: Any) -> bytes:
    return json.dumps(found, indent=1).encode() + b"\n"


# ---------------------------------------------------------------- files of old


def old_files() -> dict[str, Path]:
    """Releases of every version that loads, and a plan, as they were written at their time."""
    found = [*OLD.glob("release-v*.json"), *OLD.glob("release-v*/*.json"), *OLD.glob("plan-v*.json")]
    return {path.relative_to(OLD).as_posix(): path for path in sorted(found) if "predictions" not in path.name}


def as_today(path: Path) -> dict[str, Any]:
    """What an old file is today: the hash of the bytes that it would be written as, and what it predicts."""
    if path.name.startswith("plan"):
        return {"sha256": hashlib.sha256(_saved(PublicPlan.load(path))).hexdigest()}
    release = Release.load(path)
    return {"sha256": hashlib.sha256(release.to_json()).hexdigest(), **predictions(release)}


def all_as_today() -> bytes:
    return _lines({name: as_today(path) for name, path in old_files().items()})


# ---------------------------------------------------------------- what is expected


def expected(name: str) -> bytes:
    return (EXPECTED / name).read_bytes()


def versions() -> dict[str, str]:
    """They stand in releases and plans, and in nothing else that is compared."""
    return {"hedgerow": hedgerow.__version__, "numpy": np.__version__}


_VERSIONED = [
    (re.compile(rb'"made_by":( ?)"hedgerow [^"]*"'), rb'"made_by":\1"hedgerow *"'),
    (re.compile(rb'"drawn_with":( ?)"numpy [^"]*"'), rb'"drawn_with":\1"numpy *"'),
    (re.compile(rb'"content_hash":( ?)"[0-9a-f]{64}"'), rb'"content_hash":\1"*"'),
]


def comparable(data: bytes) -> bytes:
    """The bytes themselves. Under another version of hedgerow or numpy: without the fields that name it, and the hash over them."""
    if json.loads(expected("versions.json")) == versions():
        return data
    for pattern, replacement in _VERSIONED:
        data = pattern.sub(replacement, data)
    return data


def check(name: str, got: bytes) -> None:
    """The same bytes as in the expected file of that name."""
    compare(name, comparable(got), comparable(expected(name)))


def compare(name: str, got: bytes, wanted: bytes) -> None:
    """An AssertionError that shows where they begin to differ."""
    if got != wanted:
        at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
        near = slice(max(0, at - 60), at + 60)
        there = [data[near].decode(errors="replace") for data in (wanted, got)]
        raise AssertionError(f"{name}: other bytes from {at} on; expected …{there[0]}…, got …{there[1]}…")
