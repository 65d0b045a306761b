"""HTML pages by hand: one file, no scripts, nothing to fetch, readable on a phone, in print, in light and dark.

Whatever is given as a value is escaped here. Arguments named `content` are markup of the caller's own making.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hedgerow.plots.svg import escape

# Defence in depth: were anything to get past `escape`, the page would still neither run it nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#566171;--paper:#f4f6f9;--card:#fff;--line:#dfe4ea;--accent:#0072b2;
--good:#e3f3ec;--good-line:#009e73;--bad:#fdeee2;--bad-line:#d55e00;--track:#e3e8ee}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#a9b4c2;--paper:#10141a;--card:#171c24;--line:#2c3542;
--accent:#56b4e9;--good:#12302a;--good-line:#2bbf95;--bad:#3a2417;--bad-line:#f08a4b;--track:#2c3542}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;overflow-wrap:break-word}
main{max-width:1060px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 6px}h2{font-size:1.2rem;margin:0 0 12px}
h3{font-size:1rem;margin:18px 0 6px}.two h3{margin-top:0}
p{margin:0 0 12px}.soft{color:var(--soft)}.lead{font-size:1.05rem;color:var(--soft);margin-bottom:18px}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;margin:18px 0}
.promise{border-left:5px solid var(--good-line);background:var(--good);border-radius:8px;padding:14px 18px;
margin:0 0 18px}
.promise.none{border-color:var(--bad-line);background:var(--bad)}.promise p:last-child{margin:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.tile b{display:block;font-size:1.3rem;line-height:1.25}.tile span{color:var(--soft);font-size:.86rem}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;padding:7px 14px 7px 0;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft);white-space:nowrap}
.pairs th{width:30%;white-space:normal;padding-right:16px}.pairs td,.hash,h1{overflow-wrap:anywhere}
.number{font-variant-numeric:tabular-nums}
.scroll table{min-width:560px}tfoot td{font-weight:600;border-bottom:0}
.hash{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.82rem}
figure{margin:0 0 18px}figure:last-child{margin-bottom:0}figure svg{display:block;max-width:100%;height:auto}
.wide svg{max-width:none}@media (min-width:1000px){.wide svg{max-width:100%}}
ol.rules{padding-left:1.4em;margin:0}ol.rules li{margin:0 0 10px}ol.rules small{color:var(--soft);display:block}
.two{display:grid;grid-template-columns:1fr 1fr;gap:22px}@media (max-width:720px){.two{grid-template-columns:1fr}
main{padding:18px 12px 32px}section{padding:16px 14px}h1{font-size:1.45rem}}
ul{margin:0;padding-left:1.2em}li{margin-bottom:7px}
.gauge{height:18px;border-radius:9px;background:var(--track);overflow:hidden;margin:10px 0 8px}
.gauge i{display:block;height:100%;background:var(--accent)}
details{margin:0 0 18px}details:last-child{margin:0}details summary{cursor:pointer;color:var(--soft)}
pre{overflow-x:auto;font-size:.82rem;line-height:1.45;overflow-wrap:normal;background:var(--paper);border-radius:8px;padding:12px}
footer{color:var(--soft);font-size:.86rem}
@media print{body{background:#fff}section{break-inside:avoid}}
"""


def page(title: str, content: Iterable[str], footer: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(part for part in content if part)
        + f"\n<footer>{escape(footer)}</footer></main></body></html>\n"
    )


def section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{content}</section>"


def items(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def pairs(lines: Iterable[tuple[object, object]]) -> str:
    """A table of names and values."""
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in lines)
    return f'<table class="pairs">{rows}</table>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], foot: Sequence[object] = ()) -> str:
    """A table that scrolls on its own where the page is too narrow for it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(_row(row) for row in rows)
    last = f"<tfoot>{_row(foot)}</tfoot>" if foot else ""
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{last}</table></div>'


def _row(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells) + "</tr>"


def many(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
