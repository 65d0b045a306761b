"""A report as plain parts, written as Markdown with pictures beside it, or as one HTML page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hedgerow.plots import html
from hedgerow.plots.svg import escape
from hedgerow_experiments.charts import Chart


@dataclass(frozen=True)
class Table:
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A chart with words below it. name: of its file, without the ending."""

    name: str
    chart: Chart
    caption: str


@dataclass(frozen=True)
class Section:
    """Without a title its blocks stand by themselves."""

    title: str
    blocks: Sequence[Block]


Block = str | Table | Figure | Section  # text is one paragraph
WIDTH = 120  # of a line of text in Markdown


def inside(blocks: Sequence[Block]) -> Iterator[str | Table | Figure]:
    """All text, tables and figures in their order, however deep."""
    for block in blocks:
        if isinstance(block, Section):
            yield from inside(block.blocks)
        else:
            yield block


def with_captions(blocks: Sequence[Block], more: Callable[[str], str]) -> list[Block]:
    """The same, every caption changed."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, Section):
            block = replace(block, blocks=with_captions(block.blocks, more))
        elif isinstance(block, Figure):
            block = replace(block, caption=more(block.caption))
        found.append(block)
    return found


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Pictures are in the folder figures/ beside the document."""
    return "\n\n".join([*([f"# {title}"] if title else []), *_markdown(blocks, 2)]) + "\n"


def _markdown(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield _wrapped(block)
        elif isinstance(block, Table):
            yield "\n".join([_markdown_row(block.heads), _markdown_row(["---"] * len(block.heads)), *map(_markdown_row, block.rows)])
        elif isinstance(block, Figure):
            yield f"![{block.caption.split('.')[0]}](figures/{block.name}.svg)\n\n{_wrapped(f'*{block.caption}*')}"
        else:
            if block.title:
                yield f"{'#' * level} {block.title}"
            yield from _markdown(block.blocks, level + 1 if block.title else level)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def html_page(title: str, blocks: Sequence[Block], pictures: Mapping[str, str], footer: str) -> str:
    """A card for each section; pictures: the SVG of each figure by its name."""
    parts = [
        html.section(block.title, _html(block.blocks, 3, pictures))
        if isinstance(block, Section) and block.title
        else _html([block], 3, pictures)
        for block in blocks
    ]
    return html.page(title, [f"<h1>{escape(title)}</h1>", *parts], footer)


def _html(blocks: Sequence[Block], level: int, pictures: Mapping[str, str]) -> str:
    parts = []
    for block in blocks:
        if isinstance(block, str):
            parts.append(f"<p>{escape(block.replace('**', '').replace('`', ''))}</p>")
        elif isinstance(block, Table):
            parts.append(html.table(block.heads, [[cell.replace("**", "") for cell in row] for row in block.rows]))
        elif isinstance(block, Figure):
            parts.append(f"<figure>{pictures[block.name]}<figcaption>{escape(block.caption)}</figcaption></figure>")
        else:
            parts.append((f"<h{level}>{escape(block.title)}</h{level}>" if block.title else "") + _html(block.blocks, level + 1, pictures))
    return "\n".join(parts)
