"""What the site has beside the files of docs/: documents from elsewhere, notebooks that were run, the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import commands
import documents
import http_api
import notebooks
import reference
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]


def on_config(config: Any) -> Any:
    """The parts of the navigation that follow from the package."""
    for section in config.nav:
        if "Tutorials" in section:
            section["Tutorials"] = [f"tutorials/{path.stem}.md" for path in notebooks.found(ROOT)]
        if "Reference" in section:
            section["Reference"] = [
                {"Python": reference.nav()},
                {"Commands": commands.nav()},
                {"HTTP API": http_api.nav()},
                *section["Reference"],
            ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Pages that are no files of docs/."""
    pages = {page: (ROOT / path).read_text(encoding="utf-8") for path, page in documents.OUTSIDE.items()}
    pages |= reference.pages() | commands.pages() | http_api.pages() | notebooks.pages(ROOT)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return documents.for_site(markdown, page.file.src_uri, ROOT)
