"""A release as one Python file without dependencies: the numbers as JSON, then the text of `standalone.py`."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files

from hedgerow.exporters.portable import Portable
from hedgerow.schema.dates import date_pattern

_BEGINS, _MODEL, _ENDS = (
    "# ---- from here on it is copied\n",
    'MODEL: dict[str, Any] = json.loads("{}")\n',
    "# ---- the model stands above\n",
)
_WIDTH = 110  # of a piece of the text

_HEAD = '''"""A private decision forest, exported by Hedgerow as one file that needs nothing but Python 3.10 or newer.

    from forest import predict, predict_proba      # a row is a dictionary {column: value}
    python forest.py rows.csv > predictions.csv

CERTIFICATE has what is guaranteed about the people whose rows it was learnt from, and the hash of the release.
"""

'''


def python_text(forest: Portable, may_lack_columns: bool = False) -> str:
    """may_lack_columns: whether rows may be without some of the columns, as those of a forest that several owners have put together"""
    source = files("hedgerow.exporters").joinpath("standalone.py").read_text(encoding="utf-8")
    before, after = source.split(_BEGINS)[1].split(_MODEL)
    return _HEAD + before + _literal(_plain(forest, may_lack_columns)) + after.replace(_ENDS, "")


def _plain(forest: Portable, may_lack_columns: bool) -> str:
    columns = [{**asdict(column), "date": None if column.date is None else date_pattern(column.date).pattern} for column in forest.columns]
    trees = [{"attribute": tree.attribute, "branch": tree.branch, "values": tree.values.tolist()} for tree in forest.trees]
    model = {
        "facts": forest.facts,
        "target": forest.target,
        "classes": forest.classes,
        "finish": forest.finish,
        "base": forest.base,
        "prior": forest.prior,
        "may_lack_columns": may_lack_columns,
        "columns": columns,
        "trees": trees,
    }
    return json.dumps(model, separators=(",", ":"), allow_nan=False)


def _literal(text: str) -> str:
    """JSON as a Python literal in lines: `repr` of ASCII text, so that nothing in it can end the literal."""
    assert text.isascii()
    lines = "\n".join(f"    {text[start : start + _WIDTH]!r}" for start in range(0, len(text), _WIDTH))
    return f"MODEL: dict[str, Any] = json.loads(\n{lines}\n)\n"
