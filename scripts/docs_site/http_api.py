"""The reference of the service's HTTP API, from what it says of itself (`GET /openapi.json`): a page for each kind of caller."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.curator.application import application
from hedgerow.curator.http.limits import Limits
from hedgerow.curator.http.service_context import Curator
from hedgerow.curator.ledger.database import open_database

FOLDER = "reference/http"
MODELS = "models"
TAGS = {  # of the routes: page, title, whom they are for
    "analysts": ("analysts", "Datasets, forests, scores", "For analysts, within what is granted to them."),
    "verbs": (
        "queries",
        "Queries, one by one",
        "For analysts, within what is granted to them. `{verb}` is the name of a [private query](../python/queries.md), such as `rows`; "
        "its arguments and its `price` stand in the body beside `number`.",
    ),
    "owners": ("owners", "People, datasets, ledger", "For owners alone."),
    "service": ("service", "Whether it runs", "For everybody, without a token."),
}
INTRODUCTION = """# HTTP API

What a running [service](../../CURATOR.md) answers, as it describes it itself at `GET /openapi.json`. In Python,
[`hedgerow.connect`](../python/remote.md) does all of this.

- Every request but those without a token has the header `Authorization: Bearer hrw_…`.
- A request that pays has an `Idempotency-Key`, new for each. Sent again, it gets the stored answer and pays nothing more.
- It is answered by a job (202); `GET /v1/jobs/{id}` says how it goes, and where its answer is.
- An error has a status of 400 or more and a body `{"error": {"code": …, "message": …}}`: [Problem](models.md#problem) lists the codes.
- [Limits](../../CURATOR_LIMITS.md) bound how much and how often.
"""


@cache
def document() -> dict[str, Any]:
    """What the application says of itself; no rows, no port."""
    with tempfile.TemporaryDirectory() as folder, open_database(folder) as database:
        found: dict[str, Any] = application(Curator.of(database, Path(folder)), Limits()).openapi()
    return found


def routes() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path, and what is said of it."""
    for path, methods in document()["paths"].items():
        yield from ((method.upper(), path, said) for method, said in methods.items())


def anchor(method: str, path: str) -> str:
    return "-".join([method.lower(), *re.findall(r"\w+", path)])


def nav() -> list[str | dict[str, str]]:
    pages = [(title, page) for page, title, _ in TAGS.values()]
    return [f"{FOLDER}/index.md", *({title: f"{FOLDER}/{page}.md"} for title, page in [*pages, ("Models", MODELS)])]


def pages() -> dict[str, str]:
    models = _Models(document()["components"]["schemas"])
    listed, made = [INTRODUCTION], {}
    for tag, (page, title, who) in TAGS.items():
        own = [(method, path, said) for method, path, said in routes() if said["tags"] == [tag]]
        listed += [f"\n## {title}\n\n{who}\n\n| route | what it does |\n| --- | --- |\n"]
        listed += [f"| [`{method} {path}`]({page}.md#{anchor(method, path)}) | {_cell(_what(said))} |\n" for method, path, said in own]
        made[f"{FOLDER}/{page}.md"] = f"# {title}\n\n{who}\n\n" + "\n".join(_route(each, page, models) for each in own)
    made[f"{FOLDER}/index.md"] = "".join(listed)
    made[f"{FOLDER}/{MODELS}.md"] = "# Models\n\nWhat answers, and parts of requests, are made of.\n\n" + "\n".join(models.left())
    return made


class _Models:
    """Each model stands once: that of a request where it is first taken, all others on a page of their own."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas
        bodies = {name: (said["tags"][0], method, path) for method, path, said in reversed(list(routes())) if (name := _body_name(said))}
        answers = {name for _, _, said in routes() for schema in _answers(said).values() if (name := _name(schema))}
        self.at_home = {name: where for name, where in bodies.items() if name not in answers}

    def place(self, name: str) -> tuple[str, str]:
        """Page and anchor."""
        if name in self.at_home:
            tag, method, path = self.at_home[name]
            return TAGS[tag][0], anchor(method, path)
        return MODELS, name.lower()

    def link(self, name: str, page: str) -> str:
        where, there = self.place(name)
        return f"[{self.schemas[name]['title']}]({'' if where == page else f'{where}.md'}#{there})"

    def left(self) -> Iterator[str]:
        for name, schema in self.schemas.items():
            if name not in self.at_home:
                yield f"## {schema['title']} {{#{name.lower()}}}\n\n{self.described(schema, MODELS)}"

    def described(self, schema: Mapping[str, Any], page: str) -> str:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        said, meanings = _divided(schema.get("description", ""), fields)
        rows = []
        for name, field in fields.items():
            words = _cell(" ".join(filter(None, (meanings.get(name), _description(field)))))
            needed = "" if page == MODELS else _needed(field, name in required)  # of an answer every field is there
            rows.append(f"| `{name}` | {self.kind(field, page)}{needed} | {words} |\n")
        table = f"| field | what it is | what it means |\n| --- | --- | --- |\n{''.join(rows)}" if rows else ""
        return "\n\n".join(part for part in (said, table) if part) + "\n"

    def kind(self, schema: Mapping[str, Any], page: str) -> str:
        """In words: text, number, `a` or `b`, list of …"""
        if name := _name(schema):
            return self.link(name, page)
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(self.kind(each, page) for each in schema["anyOf"]))
        if "enum" in schema:
            return ", ".join(f"`{each}`" for each in schema["enum"])
        if schema.get("type") == "array":
            return f"list of {self.kind(schema['items'], page)}" if "items" in schema else "list"
        if schema.get("type") == "object":
            inner = schema.get("additionalProperties")
            return f"object of {self.kind(inner, page)}" if isinstance(inner, dict) and inner else "object"
        words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
        return words.get(str(schema.get("type")), "anything")


def _route(route: tuple[str, str, dict[str, Any]], page: str, models: _Models) -> str:
    method, path, said = route
    parts = [f"## `{method} {path}` {{#{anchor(method, path)}}}", said.get("description", "")]
    if given := [each for each in said.get("parameters", []) if each["in"] != "path"]:
        rows = [
            f"| `{each['name']}` ({each['in']}) | {models.kind(each['schema'], page)}"
            f"{_needed(each['schema'], each.get('required', False))} | {_cell(each.get('description', ''))} |"
            for each in given
        ]
        parts.append("\n".join(["| parameter | what it is | what it means |", "| --- | --- | --- |", *rows]))
    parts += list(_body(said, method, path, page, models))
    answers = "; ".join(f"{status}: {text}" for status, text in _answered(said, page, models))
    return "\n\n".join(part for part in (*parts, f"**Answer**: {answers}.") if part) + "\n"


def _body(said: Mapping[str, Any], method: str, path: str, page: str, models: _Models) -> Iterator[str]:
    if "requestBody" not in said:
        return
    name = _body_name(said)
    if name and models.place(name) != (page, anchor(method, path)):
        yield f"**Body**: as for {models.link(name, page)}."
    else:
        schema = models.schemas[name] if name else said["requestBody"]["content"]["application/json"]["schema"]
        yield f"**Body** ({schema.get('title', 'JSON')}):"
        yield models.described(schema, page).strip()


def _answered(said: Mapping[str, Any], page: str, models: _Models) -> Iterator[tuple[str, str]]:
    for status, response in said["responses"].items():
        if status == "default":
            continue
        kinds = []
        for media, content in response.get("content", {}).items():
            named = _name(content.get("schema", {}))
            kinds.append(models.link(named, page) if named else f"`{media}`")
        yield status, ", ".join(kinds) or response.get("description", "nothing")


def _answers(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{status} {media}": content.get("schema", {})
        for status, response in said["responses"].items()
        for media, content in response.get("content", {}).items()
    }


def _name(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _body_name(said: Mapping[str, Any]) -> str:
    content = said.get("requestBody", {}).get("content", {}).get("application/json", {})
    return _name(content.get("schema", {}))


def _description(schema: Mapping[str, Any]) -> str:
    """Its own, or that of one of the kinds that it may be."""
    return next((each["description"] for each in (schema, *schema.get("anyOf", [])) if "description" in each), "")


def _divided(description: str, fields: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """`name: what it means`, after a sentence or in a paragraph of its own, belongs to that field; the rest is about all of them."""
    rest, meanings = [], {}
    for paragraph in description.split("\n\n"):
        starts = [found for found in re.finditer(r"(?:^|(?<=[.;] ))(\w+): ", paragraph) if found.group(1) in fields]
        ends = [*(found.start() for found in starts[1:]), len(paragraph)][: len(starts)]
        meanings |= {found.group(1): paragraph[found.end() : end].strip(" ;") for found, end in zip(starts, ends, strict=True)}
        rest.append(paragraph[: starts[0].start()].rstrip(" ;") if starts else paragraph)
    return "\n\n".join(filter(None, rest)), meanings


def _needed(schema: Mapping[str, Any], required: bool) -> str:
    """What follows the kind of a field: whether it must be there, or what it is without."""
    default = schema.get("default")
    if required:
        return ", **required**"
    if default is None or default in ("", {}) or (isinstance(default, int) and default >= 2**31):  # nothing, or no bound
        return ""
    return f"; `{default}` if left out"


def _what(said: Mapping[str, Any]) -> str:
    return str(said.get("description", "")).split("\n\n")[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
