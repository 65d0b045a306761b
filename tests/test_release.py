"""The release document: round trips, and every kind of bad file gets a clear error."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import codes_for, forests, small_schema, small_table

from hedgerow import PrivateRDTClassifier, Release, SNRForestClassifier
from hedgerow.after.vote import VOTES
from hedgerow.certificate import no_certificate
from hedgerow.errors import ReleaseError
from hedgerow.forest import CountedForest
from hedgerow.release import Document, _hash

HERE = Path(__file__).parent


def trained(algorithm: Any = PrivateRDTClassifier) -> Release:
    return algorithm(small_schema(), "1/3", random_state=0).fit(*small_table(500)).release_


@given(forests(), st.sampled_from(VOTES), st.integers(0, 2**32))
def test_round_trip_keeps_every_prediction(forest: CountedForest, vote: str, seed: int) -> None:
    forest = CountedForest(forest.codebook, forest.trees, forest.counts, (Fraction(7, 3),))
    release = Release(forest, no_certificate("a test"), algorithm="test", vote=vote, parameters={"noise_rule": "tight"})
    again = Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert again.forest.trees == release.forest.trees
    codes = codes_for(forest.codebook.sizes, 20, seed)
    assert np.array_equal(again.predict_codes_proba(codes), release.predict_codes_proba(codes))


@pytest.mark.parametrize("algorithm", [PrivateRDTClassifier, SNRForestClassifier])
@pytest.mark.parametrize("name", ["forest.json", "forest.json.gz"])
def test_file_round_trip(algorithm: Any, name: str, tmp_path: Path) -> None:
    release = trained(algorithm)
    release.save(tmp_path / name)
    again = Release.load(tmp_path / name)
    columns, _ = small_table(200, seed=9)
    assert np.array_equal(again.predict_proba(columns), release.predict_proba(columns))
    assert again.predict(columns).tolist() == release.predict(columns).tolist()
    assert (again.certificate, again.chosen, again.released) == (release.certificate, release.chosen, release.released)
    assert again.schema == release.schema
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else b'{"')
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing else is left behind


def test_pickling_goes_through_the_document() -> None:
    release = trained()
    again = pickle.loads(pickle.dumps(release))  # noqa: S301  our own bytes
    assert again.to_json() == release.to_json()


def test_the_certificate_of_a_private_forest() -> None:
    certificate = trained().certificate
    assert certificate.guarantee == "epsilon-DP"
    assert certificate.epsilon == "1/3"
    assert certificate.spent == Fraction(1, 3)
    assert [(e.verb, e.epsilon, e.scale) for e in certificate.events] == [
        ("rows", "0.01", "100"),
        ("leaf_counts", "97/300", "3000/97"),
    ]
    assert certificate.neighbours == "add or remove one row"
    assert any("schema" in a for a in certificate.assumptions)
    declared = PrivateRDTClassifier(small_schema(rows=500), 1).fit(*small_table(500)).release_.certificate
    assert any("500, is public" in a for a in declared.assumptions)


def test_the_oldest_version_still_loads() -> None:
    """A file written by version 1 and never rewritten."""
    release = Release.load(HERE / "data" / "release-v1.json")
    expected = json.loads((HERE / "data" / "release-v1-predictions.json").read_text())
    columns, _ = small_table(30, seed=1)
    assert release.predict(columns).tolist() == expected


# ---------------------------------------------------------------- bad files


def changed(change: Any, rehash: bool = True) -> bytes:
    """A sound document with one change, its hash made to fit so that later checks are reached."""
    document = json.loads(trained().to_json())
    document = change(document) or document
    data = json.dumps(document).encode()
    if rehash:
        try:
            import msgspec

            document["content_hash"] = _hash(msgspec.json.decode(data, type=Document))
            data = json.dumps(document).encode()
        except (msgspec.ValidationError, KeyError, TypeError):
            pass
    return data


def put(*path: Any, value: Any) -> Any:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def fewer_queries(document: Any) -> None:
    event = document["certificate"]["events"][1]
    event["queries"], event["scale"] = 1, str(1 / Fraction(event["epsilon"]))
    document["noise"] = [event["scale"]]


def unpaid_rows(document: Any) -> None:
    document["certificate"]["events"] = document["certificate"]["events"][1:]


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else [0]


def many_attributes() -> dict[str, Any]:
    return {f"a{i}": {"kind": "numeric", "low": 0, "high": 1} for i in range(61_000)}


BAD = {
    "empty": (b"", "sound release"),
    "not json": (b"\x00\x01\x02", "sound release"),
    "another json": (b'{"a": 1}', "sound release"),
    "a list": (b"[1, 2]", "sound release"),
    "not utf-8": (b'{"format": "\xff"}', "sound release"),
    "pickle": (pickle.dumps({"a": 1}), "sound release"),
    "deeply nested": (b'{"format": ' + b"[" * 200_000, "sound release"),
    "other format": (changed(put("format", value="other")), "format"),
    "newer version": (changed(put("version", value=99)), "newer hedgerow"),
    "version 0": (changed(put("version", value=0)), "version 0"),
    "unknown field": (changed(put("extra", value=1)), "unknown field"),
    "altered count": (changed(put("trees", 0, "counts", 0, value=12345), rehash=False), "content hash"),
    "altered epsilon": (changed(put("certificate", "epsilon", value="0.001"), rehash=False), "content hash"),
    "epsilon below its events": (changed(put("certificate", "epsilon", value="0.001")), "events add up to"),
    "event with too little noise": (changed(put("certificate", "events", 1, "scale", value="0.001")), "follow from its ε"),
    "other noise than charged": (changed(put("noise", value=["1/1000"])), "not what its events say"),
    "fewer queries than trees": (changed(fewer_queries), "not what its events say"),
    "replayable coins": (changed(put("certificate", "sampler", value="hedgerow, seeded test coins: no privacy")), "anyone can replay"),
    "other neighbours": (changed(put("certificate", "neighbours", value="nothing")), "other neighbours"),
    "other unit": (changed(put("certificate", "unit", value="one cell")), "other neighbours"),
    "unknown mechanism": (changed(put("certificate", "events", 1, "mechanism", value="none")), "follow from its ε|no proof"),
    "rows that nobody paid for": (changed(unpaid_rows), "not paid for"),
    "too many trees": (changed(lambda d: d.update(trees=[{"attribute": [-1], "branch": [], "counts": [1, 2]}] * 10_001)), "more than"),
    "unreviewed schema": (changed(put("schema", "target", "unreviewed", value=True)), "not reviewed"),
    "epsilon without a claim": (changed(put("certificate", "guarantee", value="none")), "claims no guarantee"),
    "unknown guarantee": (changed(put("certificate", "guarantee", value="perfect")), "guarantee"),
    "claim without noise": (changed(put("noise", value=[])), "names no noise"),
    "huge exponent": (changed(put("noise", value=["1e999999999"])), "plain fraction"),
    "negative noise": (changed(put("noise", value=["-1"])), "out of range"),
    "zero division": (changed(put("noise", value=["1/0"])), "not sound"),
    "unknown vote": (changed(put("vote", value="dictator")), "votes by"),
    "bad schema": (changed(put("schema", value={"target": 3})), "attributes are missing"),
    "endless number": (changed(put("schema", "attributes", "age", "high", value=10**400)), "finite"),
    "deep schema": (changed(put("schema", "attributes", "age", "edges", value=nested(50))), "age"),
    "many bins": (changed(put("bins", value=60_000)), "bins"),
    "many attributes": (changed(put("schema", "attributes", value=many_attributes())), "too many|another"),
    "bad bins": (changed(put("bins", value=-4)), "bins"),
    "no trees": (changed(put("trees", value=[])), "no trees"),
    "too few counts": (changed(put("trees", 0, "counts", value=[1])), "counts"),
    "a count of text": (changed(put("trees", 0, "counts", 0, value="many")), "sound release"),
    "a huge count": (changed(put("trees", 0, "counts", 0, value=10**30)), "too large|sound release"),
    "counts that overflow": (changed(put("trees", 0, "counts", 0, value=2**62)), "too large"),
    "a huge node": (changed(put("trees", 0, "branch", 0, value=10**12)), "too large"),
    "a loop": (changed(put("trees", 0, "branch", 0, value=0)), "after its parent"),
    "a far node": (changed(put("trees", 0, "branch", 0, value=10**6)), "does not exist"),
    "wrong attribute": (changed(put("trees", 0, "attribute", 0, value=77)), "attribute"),
}


@pytest.mark.parametrize("kind", list(BAD))
def test_bad_documents(kind: str, tmp_path: Path) -> None:
    data, says = BAD[kind]
    path = tmp_path / "forest.json"
    path.write_bytes(data)
    with pytest.raises(ReleaseError, match=says) as raised:
        Release.load(path)
    assert str(path) in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = trained().to_json()
    for packed in (data, gzip.compress(data)):
        for length in range(0, len(packed), max(1, len(packed) // 60)):
            (tmp_path / "cut").write_bytes(packed[:length])
            with pytest.raises(ReleaseError):
                Release.load(tmp_path / "cut")


@given(st.integers(0, 2**32), st.integers(0, 255))
def test_no_changed_byte_goes_unnoticed(seed: int, byte: int) -> None:
    data = bytearray(SOUND)
    place = seed % len(data)
    if data[place] == byte:
        return
    data[place] = byte
    try:
        Release.from_json(bytes(data))
    except ReleaseError:
        return
    assert json.loads(bytes(data)) == json.loads(SOUND)  # only white space or spelling changed


SOUND = trained().to_json()


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000))
    with pytest.raises(ReleaseError, match="larger than 1,000,000 bytes"):
        Release.load(path, max_bytes=1_000_000)
    path.write_bytes(b"\x1f\x8b" + b"garbage")
    with pytest.raises(ReleaseError, match="damaged"):
        Release.load(path)


def test_unreadable_paths(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="cannot be read"):
        Release.load(tmp_path / "none.json")
    with pytest.raises(ReleaseError, match="cannot be read"):
        Release.load(tmp_path)
    with pytest.raises(ReleaseError, match="cannot be written"):
        trained().save(tmp_path / "no-such-folder" / "forest.json")


def test_loading_imports_no_code_that_reads_rows_or_draws_noise(tmp_path: Path) -> None:
    """Whoever receives a release needs neither the rows' room nor the noise's."""
    path = tmp_path / "forest.json"
    trained().save(path)
    program = (
        "import sys; from hedgerow.release import Release; Release.load(sys.argv[1]); "
        "print([m for m in sys.modules if m.startswith(('hedgerow.private', 'hedgerow.rows', 'sklearn'))])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
