"""`hedgerow synth`: a table from shared forests, and the certificate beside it."""

from __future__ import annotations

import csv
import gzip
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from hedgerow import Release, Schema, pseudo_data
from hedgerow.engines.files import TableFile
from hedgerow.inference.vote import SUMMED_COUNTS
from hedgerow.release.certificate import anonymity_certificate
from hedgerow.schema.codebook import Codebook
from hedgerow.trees.forest import CountedForest
from hedgerow.trees.tree import TreeBuilder

NAMES = ["smoker", "age", "sex", "ill"]


def test_a_table_and_its_certificate(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    out = fitted.folder / "pseudo.csv"
    result = run("synth", fitted.forest, "-o", out, "--seed", 7, "--rows", 500)
    assert result.exit_code == 0, result.output
    assert "500 pseudo-rows, method forest, seed 7" in result.stdout
    assert "guarantee: ε = 1 differential privacy" in result.stdout
    assert "post-processing" in result.stdout
    with out.open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == NAMES
    assert len(rows) == 500
    beside = json.loads((fitted.folder / "pseudo.csv.certificate.json").read_text())
    release = Release.load(fitted.forest)
    assert beside["sources"][0]["content_hash"] == release.content_hash
    assert (beside["epsilon"], beside["method"], beside["seed"], beside["rows"]) == ("1", "forest", "7", 500)
    codes, classes = TableFile(out, NAMES).read(release.codebook)
    data = pseudo_data(release, 500, seed=7)
    assert np.array_equal(codes, data.codes)
    assert np.array_equal(classes, data.class_codes)


def test_without_a_size_there_are_as_many_rows_as_the_release_speaks_of(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    out = fitted.folder / "pseudo.parquet"
    assert run("synth", fitted.forest, "-o", out, "--method", "pgen", "--classes", "hits", "--numeric", "middle").exit_code == 0
    table = pyarrow.parquet.read_table(out)
    assert table.num_rows == round(Release.load(fitted.forest).forest.class_totals.sum())
    assert table.column_names == NAMES
    assert set(table["ill"].to_pylist()) == {"no", "yes"}


def test_packed_files_hold_the_same_rows_and_no_time(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    plain, packed = fitted.folder / "a.csv", fitted.folder / "a.csv.gz"
    for out in (plain, packed):
        assert run("synth", fitted.forest, "-o", out, "--seed", 1, "--rows", 300, "--method", "basegen").exit_code == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    again = packed.read_bytes()
    assert run("synth", fitted.forest, "-o", packed, "--seed", 1, "--rows", 300, "--method", "basegen", "--force").exit_code == 0
    assert packed.read_bytes() == again


def test_several_owners(fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    other = fitted.folder / "other.json"
    result = run(
        "fit", fitted.test, "--schema", fitted.schema, "--algorithm", "dpdf", "--epsilon", "1/2", "--budget", fitted.budget, "-o", other,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    out = fitted.folder / "both.csv"
    result = run("synth", fitted.forest, other, "-o", out, "--rows", 1000)
    assert result.exit_code == 0, result.output
    assert "made from" in result.stdout
    beside = json.loads((fitted.folder / "both.csv.certificate.json").read_text())
    assert beside["epsilon"] == "1.5"
    assert sum(source["rows"] for source in beside["sources"]) == 1000
    assert 700 < beside["sources"][0]["rows"] < 900  # 2000 persons and 500, noisily
    result = run("synth", fitted.forest, fitted.forest, "-o", out, "--force")
    assert result.exit_code == 2
    assert "twice" in result.stderr


def test_a_forest_without_a_guarantee(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    assert run("fit", place.data, "--schema", place.schema, "--algorithm", "id3", "-o", place.forest).exit_code == 0
    out = place.folder / "pseudo.csv"
    result = run("synth", place.forest, "-o", out)
    assert result.exit_code == 0, result.output
    assert "method pgen" in result.stdout
    assert "no privacy guarantee" in result.stdout
    beside = json.loads((place.folder / "pseudo.csv.certificate.json").read_text())
    assert (beside["guarantee"], beside["epsilon"]) == ("none", None)


def test_an_anonymous_tree_gives_no_loss_and_its_rows_are_measured(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    schema = Schema.load(place.schema)
    builder = TreeBuilder(Codebook(schema).sizes)
    builder.split(0, 0)
    forest = CountedForest(Codebook(schema), (builder.build(),), (np.array([[20, 5], [8, 9], [30, 3]]),))
    claimed = anonymity_certificate({"k": "3"}, "3-anonymity")
    Release(forest, claimed, algorithm="anonymity-pruned tree", vote=SUMMED_COUNTS).save(place.forest)
    result = run("synth", place.forest, "-o", place.folder / "pseudo.csv")
    assert result.exit_code == 0, result.output
    assert "75 pseudo-rows, method pgen" in result.stdout
    assert "3-anonymity" in result.stdout
    assert "the pseudo-data itself need not" in result.stdout
    assert "diversity of the rows themselves: " in result.stdout
    assert "ε" not in result.stdout
    beside = json.loads((place.folder / "pseudo.csv.certificate.json").read_text())
    assert (beside["guarantee"], beside["epsilon"], beside["diversity"]["measured"]) == ("anonymity", None, True)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.txt", [], "expected a name that ends in .csv, .csv.gz or .parquet"),
        ("a.parquet.gz", [], "expected a name that ends in"),
        ("nowhere/a.csv", [], "does not exist"),
        ("there.csv", [], "exists already"),
        ("beside.csv", [], "beside.csv.certificate.json' exists already"),
        ("a.csv", ["--rows", "99999999999999999"], "rows: got"),
    ],
)
def test_refusals_write_nothing(name: str, options: list[str], words: str, fitted: SimpleNamespace, run: Callable[..., Any]) -> None:
    (fitted.folder / "there.csv").write_text("old")
    (fitted.folder / "beside.csv.certificate.json").write_text("old")
    before = {path.name for path in fitted.folder.iterdir()}
    result = run("synth", fitted.forest, "-o", fitted.folder / name, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert {path.name for path in fitted.folder.iterdir()} == before


def test_a_file_that_is_no_release_is_refused(place: SimpleNamespace, run: Callable[..., Any]) -> None:
    result = run("synth", place.data, "-o", place.folder / "a.csv")
    assert result.exit_code == 2
    assert "plain rules do not say what their attributes are" in result.stderr  # a CSV could be a rule set
    other = place.folder / "other.json"
    other.write_text("{}")
    result = run("synth", other, "-o", place.folder / "a.csv")
    assert result.exit_code == 2
    assert "not a sound release" in result.stderr
    assert not (place.folder / "a.csv").exists()


@pytest.mark.slow
def test_interrupted_work_leaves_no_file(fitted: SimpleNamespace, start: Callable[..., Any]) -> None:
    process = start("synth", fitted.forest, "-o", "big.csv", "--rows", 10**10)
    while not list(fitted.folder.glob(".new-*-big.csv")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)
    assert process.returncode == 130
    assert not [path.name for path in Path(fitted.folder).iterdir() if "big" in path.name]


def test_diversity_in_words() -> None:
    from hedgerow.cli.synth import _in_words

    assert _in_words({"measured": False, "why": "no rows"}) == "not measured (no rows)"
    found = {"measured": True, "groups": 1234, "smallest_group": 1, "fewest_classes_in_a_group": 2, "largest_share_of_one_class": 0.5}
    assert _in_words(found) == "1,234 different rows, the smallest group has 1, the least diverse 2 class(es)"


def test_help_teaches(run: Callable[..., Any]) -> None:
    result = run("synth", "--help")
    assert result.exit_code == 0
    assert "hedgerow synth " in result.stdout.split("Example:")[1]
    assert "│ synth " in run("--help").stdout
