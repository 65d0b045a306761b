"""`hedgerow share`: the whole chain of model sharing, from the owners' tables to a global model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.anonymity import Hits
from hedgerow.cli.console import progress_bar, say, table, warn
from hedgerow.cli.options import Algorithm, Bins, Confidence, ForestOptions, MinLeaf, SchemaFile, Unpruned, confidence_of
from hedgerow.cli.requirement import Alpha, C, K, L, requirement_of
from hedgerow.cli.tables import stem
from hedgerow.errors import PlanError

LOCAL_TREE = Algorithm("local-tree")
TEST_NOTE = "accuracies are exact: they are a look at the test rows, and cost no ε only if those may be looked at"


def share(
    tables: Annotated[list[Path], typer.Argument(help="The owners' tables, one file each: CSV or Parquet.", show_default=False)],
    schema: SchemaFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for the trees and the pseudo-data.", show_default=False)],
    k: K = None,
    c: C = None,
    l: L = None,  # noqa: E741
    alpha: Alpha = None,
    hits: Hits = False,
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", help="An owner who has a rule set and no table: JSON or CSV. May be repeated.", show_default=False),
    ] = None,
    local: Annotated[
        str, typer.Option("--local", help="What each owner shares: tree, or rules (its paths, pruned as a rule set).")
    ] = "tree",
    siblings: Annotated[
        str,
        typer.Option("--siblings", help="Of trees: best, reattach, needed or all branches are merged (`anonymity prune --help`)."),
    ] = "best",
    model: Annotated[
        str,
        typer.Option("--model", help="decision-tree (C4.5), cart, naive-bayes, random-forest, decision-table or conjunctive-rule."),
    ] = "decision-tree",
    method: Annotated[str, typer.Option("--method", help="pgen: path by path. basegen: random tuples that the trees label.")] = "pgen",
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="Pseudo-rows.  [default: as the trees count]", show_default=False)
    ] = None,
    min_leaf: MinLeaf = None,
    confidence: Confidence = None,
    unpruned: Unpruned = False,
    bins: Bins = None,
    test: Annotated[
        Path | None, typer.Option("--test", help="Rows to compare the models on; they may be looked at.", show_default=False)
    ] = None,
    suppression: Annotated[float, typer.Option("--suppression", help="Of the baseline: the share of rows that may be left out.")] = 0.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the pseudo-data.")] = 0,
) -> None:
    """Share models instead of data: learn a tree in each table, prune it, make pseudo-data from all of them, learn from that, compare.

    This command plays all parts at once, for a trial: each owner's, who sees one table, and the miner's, who sees the trees alone.
    In earnest each owner runs `hedgerow fit --algorithm local-tree` and `hedgerow anonymity prune`, and the miner `hedgerow synth`.

    With --test the global model is compared with one that is learnt from all tables pooled (basis), with the owners' own trees, and with
    a table that is generalised to the same requirement (LD): accuracy, the share of rows that it puts into the same class as the basis
    (class match), and the share of paths that two trees have in common (path match). comparison.svg draws it.

    --rules adds owners who have rules instead of rows (`hedgerow anonymity prune --help`): they are pruned like the others, and the miner
    learns from them, too. The models that need rows, the basis and LD, go without them.

    Where the schema names persons, one row of each is counted, so that a path's rows are its persons.

    Anonymity is NOT differential privacy. Without -k, -c or --alpha the trees are shared as they are, with no privacy at all.

    Example:

        hedgerow share a.csv b.csv c.csv --schema schema.toml -c 20 -l 2 --test test.csv -o shared
    """
    from hedgerow.engines.files import TableFile
    from hedgerow.schema.schema import Schema
    from hedgerow.sharing import pipeline as sharing
    from hedgerow.sharing.anonymous_release import check_schema
    from hedgerow.sharing.rules.rule_set import RuleSet
    from hedgerow.training.planning import plan as plan_of

    declared = Schema.load(schema)
    requirement = requirement_of(k, c, l, alpha) if any(given is not None for given in (k, c, l, alpha)) else None
    _check_choices(model, method, siblings, suppression, local)
    learning = ForestOptions(LOCAL_TREE, None, bins, min_leaf=min_leaf, confidence=confidence_of(confidence, unpruned))
    plan_of(learning.recipe(), declared)  # refuses what cannot be
    if requirement is not None:
        check_schema(declared)
    needed = [*declared.names, declared.target.name]
    of_owners = needed if declared.person is None else [*needed, declared.person]
    for path in tables:
        TableFile(path, of_owners, dialect=declared.csv)
    if test is not None:
        TableFile(test, needed, dialect=declared.csv)
    given = [RuleSet.load(path, declared, bins if path.suffix == ".csv" and isinstance(bins, int) else None) for path in rules or []]
    names = [stem(path.with_suffix("")) for path in (*tables, *(rules or []))]
    targets = [output / f"{name}.json" for name in names] + [
        output / "pseudo.csv",
        output / "pseudo.csv.certificate.json",
        output / "comparison.svg",
    ]
    if len(set(names)) < len(names):
        raise PlanError("share: two owners' files have the same name; what they share is named by them. Rename one.")
    if taken := [path for path in targets if path.exists()]:
        raise PlanError(f"output {str(taken[0])!r} exists already. Choose an empty folder.")

    def read(path: Path, names: list[str]) -> tuple[dict[str, Any], Any]:
        columns = TableFile(path, names, dialect=declared.csv).text_columns(names)
        return columns, columns.pop(declared.target.name)

    if requirement is None:
        what = "trees" if local == "tree" else "rules"
        warn(f"no requirement is given: the {what} are shared with their exact counts, without any privacy.")
    published = []
    with progress_bar("learning") as progress:
        for place, path in enumerate(tables):
            progress(place / len(tables))
            how: dict[str, Any] = {"model": local, "siblings": siblings, "hits_only": hits, **learning.settings}
            published.append(sharing.publish(*read(path, of_owners), declared, requirement, **how))
    published += [sharing.publish_rules(each, requirement, hits_only=hits) for each in given]
    rows_shown = []
    for place, (name, each) in enumerate(zip(names, published, strict=True)):
        one, groups = ("tree", "paths") if local == "tree" and each.local is not None else ("rule set", "rules")
        left = f"the empty {one}: shares nothing" if each.shared is None else f"{each.groups} {groups}"
        had = f"{len(each.local.forest.trees[0].leaves)} paths" if each.local is not None else f"{len(given[place - len(tables)])} rules"
        rows_shown.append((name, had, each.steps, left))
    table("owners", ["owner", "has", "merges", "shared"], rows_shown, numbers=(2,))
    for name, each in zip(names, published, strict=True):
        if each.shared is None:
            say(f"{name} shares nothing. {each.why}")
    learnt, made = sharing.mine([each.shared for each in published], model, rows=rows, seed=seed, method=method)
    output.mkdir(parents=True, exist_ok=True)
    for target, each in zip(targets, published, strict=False):
        if each.shared is not None:
            each.shared.save(target)
    certificate = made.save(output / "pseudo.csv")
    shared = [each.shared for each in published if each.shared is not None]
    kinds = {"tree": sum(not isinstance(each, RuleSet) for each in shared), "rule set": sum(isinstance(each, RuleSet) for each in shared)}
    models = " and ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in kinds.items() if number)
    say(f"wrote {output}: {models}, {len(made):,} pseudo-rows in pseudo.csv")
    say(f"pseudo-data: {certificate.sentence()}")
    if test is not None:
        owners = [(name, each.local) for name, each in zip(names, published, strict=True) if each.local is not None]
        rows_of = [read(path, needed) for path in tables]
        _compare(learnt, model, owners, rows_of, read(test, needed), declared, requirement, suppression, seed, output / "comparison.svg")


def _check_choices(model: str, method: str, siblings: str, suppression: float, local: str) -> None:
    """What can be refused is refused before anything is learnt or written."""
    from hedgerow.sharing.global_model import GLOBAL_MODELS
    from hedgerow.sharing.prune import BEST, SIBLINGS
    from hedgerow.sharing.pseudo.generate import METHODS

    known = {"--model": (model.replace("-", " ").lower(), tuple(GLOBAL_MODELS)), "--method": (method, METHODS)}
    known |= {"--siblings": (siblings, SIBLINGS), "--local": (local, ("tree", "rules"))}
    for option, (given, expected) in known.items():
        if given not in expected:
            raise PlanError(f"{option}: got {given!r}; expected one of {', '.join(expected)}.")
    if local == "rules" and siblings != BEST:
        raise PlanError(f"--siblings: got {siblings!r}; rules have no siblings. Leave it out, or use --local tree.")
    if not 0 <= suppression < 1:
        raise PlanError(f"--suppression: got {suppression}; expected a share from 0 to below 1.")


def _compare(
    learnt: Any,
    model: str,
    owners: Any,
    tables: Any,
    test: Any,
    schema: Any,
    requirement: Any,
    suppression: float,
    seed: int,
    picture: Path,
) -> None:
    """Accuracy and matches on the test rows, of the global model and of what it stands beside."""
    from hedgerow.plots.svg import bars_svg
    from hedgerow.sharing.comparison import compare

    found = compare(learnt, model, owners, tables, test, schema, requirement, suppression=suppression, seed=seed)

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    heads = ["what", "accuracy", "class match", "path match"]
    rows = [(each.what, number(each.accuracy), number(each.class_match), number(each.path_match)) for each in found]
    table(f"{model} on the test rows; matches are with the basis", heads, rows, numbers=(1, 2, 3))
    drawn = [each for each in found if each.accuracy is not None]
    values = [each.accuracy or 0.0 for each in drawn]
    labels = [each.what.split(":")[0].split(",")[0].removesuffix(" alone") for each in drawn]
    svg = bars_svg(labels, values, [0.0] * len(drawn), "Accuracy on the test rows", numbers=[f"{value:.3f}" for value in values])
    picture.write_text(svg + "\n", encoding="utf-8")
    say(f"wrote {picture}")
    say(TEST_NOTE)
