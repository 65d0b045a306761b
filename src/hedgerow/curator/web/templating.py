"""Rendering of templates (Jinja): everything is escaped, and an undefined name is an error."""

from __future__ import annotations

import threading
from fractions import Fraction
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hedgerow import formatting
from hedgerow.accounting import meaning
from hedgerow.curator.ledger.accounts import Person
from hedgerow.plots.html import STYLE
from hedgerow.plots.report import footer, report_content
from hedgerow.release.release import Release
from hedgerow.remote.transport import path_segment

FOLDER = "hedgerow.curator.web"
_reporting = threading.Lock()


@cache
def _templates() -> Environment:
    how: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    found = Environment(loader=PackageLoader(FOLDER), auto_reload=False, **how)
    found.filters["path_segment"] = path_segment
    found.filters["amount"] = lambda exact: formatting.amount(Fraction(exact))
    found.filters["at_most"] = lambda exact: formatting.at_most(Fraction(exact))
    found.filters["number"] = lambda exact: formatting.number(float(Fraction(exact)))
    found.globals["meaning"] = meaning
    return found


def render(template: str, person: Person | None, status: int = 200, **content: Any) -> HTMLResponse:
    return HTMLResponse(_templates().get_template(template).render(person=person, **content), status)


@cache
def style() -> str:
    """The style of reports, and what pages need besides."""
    return STYLE + files(FOLDER).joinpath("style.css").read_text(encoding="utf-8")


def report_of(content: bytes) -> dict[str, Any]:
    """The parts of a report, which are escaped by the report itself. That of a large release takes seconds: one is made at a time."""
    with _reporting:
        return _report_of(content)


@lru_cache(maxsize=16)
def _report_of(content: bytes) -> dict[str, Any]:
    release = Release.from_json(content)
    return {"report": Markup("\n".join(part for part in report_content(release) if part)), "footer": footer(release)}
