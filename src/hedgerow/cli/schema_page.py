"""The page of `hedgerow schema edit`: one form, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from hedgerow.schema.attributes import Attribute, Categorical
from hedgerow.schema.form import ON
from hedgerow.schema.schema import Schema

STYLE = """
:root { color-scheme: light dark; --line: #c9d1dc; --soft: #566171; --card: #fff; --page: #f4f6f9; --good: #00705a; --todo: #9a5200; }
@media (prefers-color-scheme: dark) { :root { --line: #3b4655; --soft: #a9b4c2; --card: #171c24; --page: #10141a; --good: #4fd0ae; --todo: #f0b060; } }
* { box-sizing: border-box; } body { margin: 0; padding: 1rem 1rem 6rem; background: var(--page); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: auto; } h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; } p { margin: .4rem 0; }
.soft { color: var(--soft); } .said { border-left: .3rem solid var(--good); padding: .5rem 1rem; background: var(--card); }
.said.bad { border-color: #c0392b; } fieldset { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); margin: 1rem 0; padding: .6rem 1rem 1rem; min-width: 0; }
legend { font-weight: 650; padding: 0 .4rem; overflow-wrap: anywhere; } .fields { display: flex; flex-wrap: wrap; gap: .8rem; } label { display: block; }
.fields label { flex: 1 1 12rem; } input:not([type=checkbox]), textarea { width: 100%; font: inherit; padding: .35rem .5rem; border: 1px solid var(--line); border-radius: .3rem; background: transparent; color: inherit; }
.state { font-weight: 400; color: var(--todo); } .state.done { color: var(--good); } .ticks { margin-top: .7rem; display: flex; flex-wrap: wrap; gap: .3rem 2rem; }
.bar { position: fixed; inset: auto 0 0 0; background: var(--card); border-top: 1px solid var(--line); padding: .7rem 1rem; } .bar div { max-width: 60rem; margin: auto; display: flex; gap: .8rem; flex-wrap: wrap; }
button { font: inherit; padding: .45rem 1.1rem; border-radius: .3rem; border: 1px solid #0072b2; background: #0072b2; color: #fff; } button.second { background: transparent; color: inherit; }
:focus-visible { outline: 3px solid #e69f00; outline-offset: 2px; }
"""  # noqa: E501


def page(schema: Schema, fields: Mapping[str, str], *, name: str, digest: str, nonce: str, said: str = "", bad: bool = False) -> str:
    """fields: as they were saved, or as somebody typed them; digest: of the file that they were made from."""
    entries = "".join(_attribute(str(place), each, fields) for place, each in enumerate(schema.attributes))
    waiting = len(schema.unreviewed)
    many = len(schema.attributes) + 1
    status = f"{waiting} of {many} entries wait for review" if waiting else "every entry is reviewed"
    told = f'<p class="said{" bad" if bad else ""}" role="{"alert" if bad else "status"}">{escape(said)}</p>' if said else ""
    return f"""{_head(f"{name}: schema", nonce)}
<h1>{escape(name)}</h1>
<p id="status">Predicts <b>{escape(schema.target.name)}</b> from {len(schema.attributes)} columns; {status}.</p>
<p class="soft">This will be published with every forest. Ask of each entry: would somebody who has never seen the table know it?
If not, put public bounds and values in its place. Tick it once it is public. Until then this page is as private as the rows.</p>{told}
<form method="post" autocomplete="off"><input type="hidden" name="digest" value="{digest}">
{_target(schema, fields)}{entries}{_table(schema, fields)}
<div class="bar"><div><button name="do" value="save">Save</button>
<button name="do" value="finish">Save and finish</button>
<button class="second" name="do" value="leave" formnovalidate>Leave without saving</button>
</div></div></form></main></body></html>"""


def goodbye(said: str, nonce: str) -> str:
    return f"""{_head("Done", nonce)}<h1>Done</h1><p class="said" role="status">{escape(said)}</p>
<p>You can close this page.</p></main></body></html>"""


def _head(title: str, nonce: str) -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style nonce="{nonce}">{STYLE}</style></head><body><main>"""


def _target(schema: Schema, fields: Mapping[str, str]) -> str:
    classes = _area("target.classes", "Classes, one in a line", fields)
    return _set(schema.target.name, "what is predicted", not schema.target.unreviewed, classes, _tick("target", schema.target.name, fields))


def _attribute(place: str, each: Attribute, fields: Mapping[str, str]) -> str:
    if isinstance(each, Categorical):
        kind = "one of some values"
        content = _area(f"{place}.values", "Values, one in a line: all that could occur", fields)
        content += _input(f"{place}.other", "Branch for values that are not listed", fields, "none: not counted")
    else:
        kind = "a number" if each.date is None else f"a date, written {each.date}"
        content = _input(f"{place}.low", "Lowest", fields) + _input(f"{place}.high", "Highest", fields)
        content += _input(f"{place}.edges", "Edges of cells of your own", fields, "none, or 0, 18, 65, 120")
    content += _input(f"{place}.missing", "Branch for missing values", fields, "none: not counted")
    ticks = _tick(place, each.name, fields) + _checkbox(f"{place}.leave_out", "Leave this column out", fields)
    return _set(each.name, kind, not each.unreviewed, content, ticks)


def _table(schema: Schema, fields: Mapping[str, str]) -> str:
    content = _input("rows", "A public number of rows", fields, "none: a noisy one is paid for")
    content += _input("person", "The column that says whose row it is", fields, "none: each row is a person")
    content += _input("rows_per_person", "Rows of a person that count at most", fields, "1")
    ticks = _checkbox("rows.public", "The number of rows is public knowledge", fields)
    return _set("The table", "optional", None if schema.rows is None else not schema.unreviewed_rows, content, ticks)


def _set(name: str, kind: str, reviewed: bool | None, content: str, ticks: str) -> str:
    """reviewed: None where nothing is declared."""
    state = "" if reviewed is None else '<span class="state done">public</span>' if reviewed else '<span class="state">not reviewed</span>'
    legend = f'<legend>{escape(name)} <span class="soft">· {escape(kind)} ·</span> {state}</legend>'
    return f'<fieldset>{legend}<div class="fields">{content}</div><div class="ticks">{ticks}</div></fieldset>'


def _tick(entry: str, name: str, fields: Mapping[str, str]) -> str:
    return _checkbox(f"{entry}.public", f"{name}: this is public knowledge", fields)


def _checkbox(name: str, label: str, fields: Mapping[str, str]) -> str:
    ticked = " checked" if fields.get(name) == ON else ""
    return f'<label><input type="checkbox" name="{name}"{ticked}> {escape(label)}</label>'


def _input(name: str, label: str, fields: Mapping[str, str], hint: str = "") -> str:
    value = escape(fields.get(name, ""))
    return f'<label>{escape(label)}<input name="{name}" value="{value}" placeholder="{escape(hint)}" spellcheck="false"></label>'


def _area(name: str, label: str, fields: Mapping[str, str]) -> str:
    text = fields.get(name, "")
    rows = min(max(2, text.count("\n") + 1), 12)
    # A browser takes one line break after the tag away.
    return f'<label>{escape(label)}<textarea name="{name}" rows="{rows}" spellcheck="false">\n{escape(text)}</textarea></label>'
