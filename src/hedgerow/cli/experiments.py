"""`hedgerow experiments`: the papers' experiments are a package of their own, asked for here if it is installed."""

from __future__ import annotations

from importlib import import_module

import typer

from hedgerow.errors import ExperimentError

PACKAGE = "hedgerow_experiments"
ITS_OWN = {"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": True}  # its words, --help among them


def experiments(context: typer.Context) -> None:
    """Run the papers' experiments and the peers beside us, and report: a package of its own (`pip install ./experiments`)."""
    try:
        app = import_module(f"{PACKAGE}.cli").app
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise ExperimentError(
            "experiments: a package of its own, which is not installed here. Next: `pip install ./experiments` in Hedgerow's repository."
        ) from error
    group = typer.main.get_command(app)
    with group.make_context("experiments", list(context.args), parent=context.parent) as inner:
        group.invoke(inner)


experiments.words = ITS_OWN  # type: ignore[attr-defined]
