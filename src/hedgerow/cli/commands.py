"""The commands by name: where each is, and its line in the help. A command is imported when it is called, so that help is quick."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer


class Command(NamedTuple):
    """module: in `hedgerow.cli`; thing: its function, or `app` where it has commands of its own; help: as the thing itself says."""

    module: str
    thing: str
    help: str


COMMANDS = {  # in the order of the help
    "schema": Command("schema", "app", "Write and check the schema: the public facts about a table (columns, domains, classes)."),
    "advise": Command(
        "advise",
        "advise",
        "Say what accuracy to expect at ε = 0.1 … 4, and the smallest ε that would do. Reads no private row, costs no ε.",
    ),
    "plan": Command("plan", "plan", "Show what `fit` would build and what it would cost. Touches no data, costs nothing."),
    "fit": Command("fit", "fit", "Train a forest on private rows and save what may be published."),
    "update": Command("update", "update", "Add new rows to a forest: count them in its trees, add noise, add the counts."),
    "count": Command("count", "count", "Count your own rows in the trees of a plan that you share with others, and save the noisy counts."),
    "merge": Command("merge", "merge", "Put forests together that were counted from one plan. Reads no rows, costs no ε."),
    "together": Command("together", "app", "Count your own rows together with other owners: one release for all."),
    "predict": Command("predict", "predict", "Predict the class of each row of a table. Costs no ε."),
    "export": Command("export", "export", "Write a forest for another program: ONNX, SQL, or one Python file. Costs no ε."),
    "explain": Command(
        "explain",
        "explain",
        "Tell why a row is predicted as it is: what each attribute adds, the largest first. Costs no ε. Without --row: the first row.",
    ),
    "rules": Command("show", "rules", "List what the forest has learnt as rules, the best first."),
    "show": Command("show", "show", "Show what a forest or a rule set is, what it claims, and how one of its trees looks."),
    "evaluate": Command(
        "evaluate", "evaluate", "Measure a forest on private test rows: a noisy confusion matrix and the accuracy, each with its error."
    ),
    "budget": Command("budget", "app", "The total ε of a table, in a file that every request is charged to."),
    "ledger": Command("ledger", "app", "The ledger of a data owner's service: who may spend how much ε, and what was spent."),
    "serve": Command("serve", "serve", "Serve forests from tables that stay here, until their budgets are spent."),
    "curator": Command("curator", "app", "A data owner's service: its datasets, ceilings, people and tokens."),
    "federate": Command("federate", "federate", "Ask several data owners' services for counts on one plan, and merge them into a forest."),
    "anonymity": Command(
        "anonymity",
        "app",
        "Anonymity of a tree's paths, of rules, or of a table's rows: k, (c, l)-diversity, (alpha, k). This is not differential privacy.",
    ),
    "synth": Command("synth", "synth", "Make a table of pseudo-rows from shared forests. Reads no rows, costs no ε."),
    "share": Command(
        "share",
        "share",
        "Share models instead of data: learn a tree in each table, prune it, make pseudo-data from all of them, learn from that, compare.",
    ),
    "key": Command("keys", "app", "Keys to sign plans and forests with (Ed25519)."),
    "sign": Command("keys", "sign", "Sign a plan or a forest: others can check that it is yours and that nobody has changed it."),
    "verify": Command("keys", "verify", "Check a plan or a forest: its content, who signed it, and of a plan that it holds no data."),
    "audit": Command(
        "audit",
        "audit",
        "Attack the guarantee: train many times on two tables that differ in one row, and look for what gives the row away.",
    ),
    "experiments": Command(
        "experiments",
        "experiments",
        "Run the papers' experiments and the peers beside us, and report: a package of its own (`pip install ./experiments`).",
    ),
    "demo": Command(
        "demo", "demo", "Go through all steps on synthetic patients that come with the package, and write a report with pictures."
    ),
}


@cache
def loaded(name: str) -> Any:
    """The command itself."""
    module, what, _ = COMMANDS[name]
    thing = getattr(import_module(f"hedgerow.cli.{module}"), what)
    parent = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(thing, typer.Typer):
        parent.add_typer(thing, name=name)
    else:
        its_own = getattr(thing, "words", None)  # a command that reads its words, --help among them, by itself
        parent.command(name, add_help_option=its_own is None, context_settings=its_own)(thing)
    return typer.main.get_group(parent).commands[name]
