"""`hedgerow anonymity generalise`: a table, its schema and its certificate, or nothing at all."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedgerow.anonymity.requirement import Requirement
from hedgerow.errors import PlanError
from hedgerow.schema.attributes import Categorical, Numeric, Target
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.schema import Schema
from hedgerow.sharing.generalise import Generalised, generalise
from hedgerow.sharing.generalised_table import groups_in, save_generalised

Run = Callable[..., Any]


@pytest.fixture
def made(place: SimpleNamespace, run: Run) -> SimpleNamespace:
    """`place` with a generalised table."""
    place.out = place.folder / "general.csv"
    place.certificate, place.its_schema = place.folder / "general.csv.certificate.json", place.folder / "general.csv.schema.toml"
    place.result = run("anonymity", "generalise", place.data, "--schema", place.schema, "-k", 30, "-c", 20, "-l", 2, "-o", place.out)
    assert place.result.exit_code == 0, place.result.output
    return place


def groups(path: Path, names: list[str]) -> dict[tuple[str, ...], Counter[str]]:
    found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[tuple(row[name] for name in names)][row["ill"]] += 1
    return found


def test_every_group_of_the_file_satisfies_it(made: SimpleNamespace) -> None:
    found = groups(made.out, ["smoker", "age", "sex"])
    assert len(found) > 2
    for counts in found.values():
        first, second = counts.most_common(2)
        assert counts.total() >= 30
        assert first[1] < 20 * second[1]
    certificate = json.loads(made.certificate.read_text())
    assert (certificate["guarantee"], certificate["epsilon"]) == ("anonymity", None)
    assert certificate["requirement"] == {"k": "30", "c": "20", "l": "2"}
    assert certificate["sha256"] == hashlib.sha256(made.out.read_bytes()).hexdigest()
    assert certificate["measured"]["groups"] == len(found)
    assert certificate["measured"]["k"] == min(counts.total() for counts in found.values())
    assert certificate["rows"] == sum(counts.total() for counts in found.values()) == 2000
    for words in ("NOT differential privacy", "smallest group", "homogeneity attack"):
        assert words in made.result.stdout


def test_the_order_of_the_rows_tells_nothing(made: SimpleNamespace) -> None:
    schema = Schema.load(made.its_schema)
    with made.out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    codes = Codebook(schema).encode({name: [row[name] for row in rows] for name in schema.names}).tolist()
    assert codes == sorted(codes)


def test_the_file_can_be_used_with_its_schema(made: SimpleNamespace, run: Run) -> None:
    tree = made.folder / "tree.json"
    result = run("fit", made.out, "--schema", made.its_schema, "--algorithm", "local-tree", "-o", tree)
    assert result.exit_code == 0, result.output
    assert run("anonymity", "check", tree, "-k", 30, "-c", 20, "-l", 2).exit_code == 0  # its paths are made of whole groups


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_other_kinds_of_files(ending: str, made: SimpleNamespace, run: Run) -> None:
    out = made.folder / f"again.{ending}"
    result = run("anonymity", "generalise", made.data, "--schema", made.schema, "-k", 30, "-c", 20, "-l", 2, "-o", out)
    assert result.exit_code == 0, result.output
    schema = Schema.load(made.folder / f"again.{ending}.schema.toml")
    assert len(groups_in(out, schema, range(3))) == len(groups(made.out, ["smoker", "age", "sex"]))


def test_quasi_identifiers_alone_make_groups(place: SimpleNamespace, run: Run) -> None:
    out = place.folder / "some.csv"
    result = run("anonymity", "generalise", place.data, "--schema", place.schema, "-k", 300, "--quasi", "smoker", "-o", out)
    assert result.exit_code == 0, result.output
    assert len(groups(out, ["smoker"])) == 3
    assert min(counts.total() for counts in groups(out, ["smoker", "age"]).values()) < 300
    assert "persons can be known by smoker alone" in json.loads((place.folder / "some.csv.certificate.json").read_text())["assumptions"]


def test_what_no_table_satisfies_is_not_saved(place: SimpleNamespace, run: Run) -> None:
    out = place.folder / "none.csv"
    out.write_text("mine")
    result = run("anonymity", "generalise", place.data, "--schema", place.schema, "-k", 3000, "-o", out, "--force")
    assert result.exit_code == 1
    assert "impossible" in result.stdout
    assert "--suppression" in result.stdout
    assert out.read_text() == "mine"
    assert not list(place.folder.glob("none.csv.*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give k"),
        (["-c", "5"], "needs both"),
        (["-c", "5", "-l", "3"], "the target has 2 classes"),
        (["-k", "5", "--suppression", "1"], "from 0 to below 1"),
        (["-k", "5", "--suppression", "-1"], "suppression: got -1"),
        (["-k", "5", "--quasi", "size"], "expected names of attributes: smoker, age, sex"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(words: list[str], says: str, place: SimpleNamespace, run: Run) -> None:
    before = sorted(place.folder.iterdir())
    result = run("anonymity", "generalise", place.data, "--schema", place.schema, *words, "-o", place.folder / "out.csv")
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert sorted(place.folder.iterdir()) == before


def test_files_that_are_there_are_kept(made: SimpleNamespace, run: Run) -> None:
    words = ["anonymity", "generalise", made.data, "--schema", made.schema, "-k", 30]
    made.out.unlink()
    for kept in (made.certificate, made.its_schema):
        before = kept.read_bytes()
        result = run(*words, "-o", made.out)
        assert result.exit_code == 2
        assert "exists already" in result.stderr
        assert kept.read_bytes() == before
        kept.unlink()
    assert run(*words, "-o", made.data, "--force").exit_code == 2  # an input
    assert "ends in .csv" in run(*words, "-o", made.folder / "out.txt").stderr


def test_a_person_counts_once(tmp_path: Path, run: Run) -> None:
    schema, table = tmp_path / "s.toml", tmp_path / "t.csv"
    Schema([Categorical("a", ["x", "y"])], Target("ill", ["no", "yes"]), person="id").save(schema)
    words = ["anonymity", "generalise", table, "--schema", schema, "-k", 2, "-o", tmp_path / "o.csv"]
    table.write_text("id,a,ill\n1,x,no\n1,x,yes\n2,y,no\n3,y,yes\n")
    result = run(*words)
    assert result.exit_code == 2
    assert "one row of each" in result.stderr
    table.write_text("id,a,ill\n1,x,no\n4,x,yes\n2,y,no\n3,y,yes\n")
    assert run(*words).exit_code == 0
    assert (tmp_path / "o.csv").read_text().splitlines()[0] == "a,ill"


def test_a_schema_that_was_read_from_rows_is_not_published(place: SimpleNamespace, run: Run) -> None:
    draft = place.folder / "draft.toml"
    assert run("schema", "draft", place.data, "--target", "ill", "-o", draft).exit_code == 0
    result = run("anonymity", "generalise", place.data, "--schema", draft, "-k", 5, "-o", place.folder / "out.csv")
    assert result.exit_code == 2
    assert "read from the rows" in result.stderr


def generalised(requirement: Requirement) -> Generalised:
    """Values that have no branch, and a group that is called like the branch that is made for them."""
    schema = Schema([Categorical("a", ["x", "no value"]), Numeric("n", 0, 8, edges=[0, 4, 8])], Target("ill", ["no", "yes"]))
    codebook = Codebook(schema)
    codes = np.repeat(np.array([[0, 0], [1, 1], [2, 2]], dtype=codebook.dtype), 4, axis=0)
    return generalise(codes, np.tile([0, 1], 6).astype(np.uint16), codebook, requirement)


def test_values_without_a_branch_are_empty_cells_that_read_back(tmp_path: Path) -> None:
    saved = save_generalised(generalised(Requirement.of(k=4)), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[-1] == ",,yes"
    schema = Schema.load(tmp_path / "t.csv.schema.toml")
    assert [attribute.missing for attribute in schema.attributes] == ["no value_", "no value"]
    assert saved.certificate.measured["k"] == 4
    assert len(groups_in(tmp_path / "t.csv", schema, (0, 1))) == 3


def test_what_does_not_read_back_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake of the writer: a row is lost."""
    from hedgerow.sharing import generalised_table
    from hedgerow.sharing.pseudo.files import write_blocks

    monkeypatch.setattr(
        generalised_table, "write_blocks", lambda file, path, schema, blocks: write_blocks(file, path, schema, [blocks[0].part(1, 12)])
    )
    with pytest.raises(PlanError, match="nothing is published"):
        save_generalised(generalised(Requirement.of(k=2)), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


def test_help_teaches(run: Run) -> None:
    text = " ".join(run("anonymity", "generalise", "--help").stdout.split())
    assert "NOT differential privacy" in text
    assert "hedgerow anonymity generalise table.csv --schema schema.toml -c 20 -l 2" in text
