"""`hedgerow rules` and `hedgerow show`: what a forest has learnt, and what it claims. Both cost no ε."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow import formatting
from hedgerow.cli.console import guarantee, note, pairs, say
from hedgerow.cli.fit import show_events
from hedgerow.cli.options import Force
from hedgerow.cli.outputs import check_output
from hedgerow.cli.rule_formats import SUFFIXES, WRITERS
from hedgerow.cli.tables import show_recorded_signers, show_tables, who_signed
from hedgerow.errors import PlanError

if TYPE_CHECKING:
    from hedgerow.release.release import Release

IMPORTANCES = 8  # named in the summary
SOME_RULES = 20  # that are listed, if nothing else is said

ForestFile = Annotated[Path, typer.Argument(help="A saved forest.", show_default=False)]
Unpruned = Annotated[bool, typer.Option("--unpruned", help="Also the nodes that pruning removes and predictions do not use.")]


class RuleFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    rule_set = "rule-set"


class RuleOrder(StrEnum):
    default = "default"
    confidence = "confidence"
    support = "support"


NO_RULES = (
    "This forest has no rules: it adds up what all attributes and trees say, and no path of a tree stands for itself. What each value "
    "adds: hedgerow show {forest} --attribute NAME. Why a row is predicted so: hedgerow explain {forest} ROWS. For rules to read, fit "
    "with --algorithm dpdf."
)
OF_COUNTS = (
    "These rules are of counts alone, one or two attributes at a time. A prediction adds up what all attributes say, and what boosted "
    "trees add, if there are any: hedgerow show {forest}."
)


def rules(
    forest: ForestFile,
    top: Annotated[int | None, typer.Option("--top", min=1, help="How many rules at most.  [default: 20]", show_default=False)] = None,
    min_support: Annotated[
        float, typer.Option("--min-support", help="Least number of rows (noisy); none with fewer than 0 is listed.")
    ] = 0,
    min_confidence: Annotated[float, typer.Option("--min-confidence", min=0, max=1, help="Least share of the class.")] = 0,
    label: Annotated[str | None, typer.Option("--class", help="Only rules for this class.", show_default=False)] = None,
    sub_rules: Annotated[bool, typer.Option("--sub-rules", help="Also rules that stop above a leaf.")] = False,
    unpruned: Unpruned = False,
    noisy: Annotated[bool, typer.Option("--noisy", help="Also rules that noise alone may have made.")] = False,
    sort: Annotated[RuleOrder, typer.Option("--sort", help="default: surest after taking off twice the noise.")] = RuleOrder.default,
    format: Annotated[
        RuleFormat | None,
        typer.Option(
            "--format",
            help="How to write them. rule-set: all paths of one tree with exact counts, to be pruned and shared (`hedgerow anonymity`).  "
            "[default: by the name of the file, or text]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file: .txt, .md, .csv or .json.  [default: standard output]", show_default=False),
    ] = None,
    force: Force = False,
) -> None:
    """List what the forest has learnt as rules, the best first.

    A rule is a path of a tree: its conditions, the class that they point to, the share of that class (confidence) and
    the number of rows (support). Both come from noisy counts and are shown with the error that the noise gives them;
    then come the noisy counts of all classes.
    Rules that noise alone may have made are left out: those with no more rows than a few times the noise on them, or with a share of the
    class that is within a few errors of its share in all rows. How many errors grows with the number of paths, since the best of many
    looks good by noise alone: 2.0 for one path, 3.6 for 180, as what is printed at the end says.
    The order is by what is left of the confidence after two such errors, then by support, or as --sort says. A forest
    that prunes itself has the rules of its pruned trees. Of a Hedgerow forest only counts have rules, if it is read from any: boosted trees
    and jointly fitted scores have none, and `hedgerow show` tells what its attributes say.

    Example:

        hedgerow rules forest.json --top 10 --class yes --min-support 100

        hedgerow rules forest.json --sub-rules --sort support --top 1000 -o rules.csv

        hedgerow rules tree.json --format rule-set -o rules.json
    """
    if output is not None:
        check_output(output, [forest], force)
    from hedgerow.release.release import Release

    release = Release.load(forest)
    if format == RuleFormat.rule_set:
        from hedgerow.cli.rule_sets import write_rule_set

        only_some = {
            "--top": top, "--min-support": min_support, "--min-confidence": min_confidence, "--class": label, "--sub-rules": sub_rules,
            "--unpruned": unpruned, "--noisy": noisy,
        }  # fmt: skip
        write_rule_set(release, [option for option, given in only_some.items() if given], output)
        return
    from hedgerow.inference.rules import within_noise
    from hedgerow.inference.vote import ADDITIVE

    wanted: dict[str, Any] = {"sub_rules": sub_rules, "min_support": min_support, "min_confidence": min_confidence, "label": label}
    most = SOME_RULES if top is None else top
    found = release.rules(**wanted, top=most, sort=str(sort), pruned=not unpruned, above_noise=not noisy)
    left_out = None if noisy else within_noise(release.forest, **wanted, removed=None if unpruned else release.unused)
    kind = str(format) if format is not None else SUFFIXES.get(output.suffix.lower() if output is not None else "", "text")
    none = not found and not release.rules(sub_rules=True, above_noise=False, pruned=not unpruned, top=1)
    if none and output is None:
        say(NO_RULES.format(forest=forest))
        return
    written = WRITERS[kind](found, release.schema.target.name)
    if output is not None:
        output.write_text(written, encoding="utf-8")
        say(f"wrote {output}: {len(found):,} {'rule' if len(found) == 1 else 'rules'}")
        if none:
            note(NO_RULES.format(forest=forest))
    elif kind in ("text", "markdown"):
        say(written.rstrip("\n"))
    else:
        print(written, end="")  # for another program: not a character is changed
    if found and release.vote == ADDITIVE:
        note(OF_COUNTS.format(forest=forest))
    if left_out is not None and left_out.left_out:
        note(f"{left_out.text()} (--noisy lists all)")


def show(
    forest: ForestFile,
    tree: Annotated[int | None, typer.Option("--tree", min=1, help="Which tree, counted from 1.  [default: 1]", show_default=False)] = None,
    depth: Annotated[int, typer.Option("--depth", min=0, help="How many levels to show.")] = 3,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A picture: a name that ends in .svg or .html.", show_default=False),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write a whole report with pictures to this .html file.", show_default=False),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", help="hedgerow: only the effect of this attribute. May be repeated.", show_default=False),
    ] = None,
    unpruned: Unpruned = False,
    force: Force = False,
    certificate: Annotated[bool, typer.Option("--certificate", help="Show the guarantee in full, and no tree.")] = False,
) -> None:
    """Show what a forest or a rule set is, what it claims, and how one of its trees looks.

    Of a Hedgerow forest, which adds up what its attributes say, it shows what the values of the most important attributes do
    (or those of --attribute); a tree only with --tree.

    Trees of a forest that prunes itself are shown pruned, as predictions use them; --unpruned shows all that was counted.

    Example:

        hedgerow show forest.json --tree 2 --depth 4 -o tree.svg

        hedgerow show forest.json --attribute age -o age.svg

        hedgerow show forest.json --report report.html
    """
    if output is not None:
        if output.suffix.lower() not in (".svg", ".html", ".htm"):
            raise PlanError(f"output {str(output)!r}: expected a name that ends in .svg or .html.")
        check_output(output, [forest], force)
    if report is not None:
        check_output(report, [forest], force)
    from hedgerow.inference.vote import ADDITIVE
    from hedgerow.release.document import RULE_SET_FORMAT
    from hedgerow.release.release import Release

    if format_of(forest) == RULE_SET_FORMAT:
        from hedgerow.cli.rule_sets import show_rule_set

        given = {"--tree": tree, "--output": output, "--report": report, "--attribute": attribute, "--unpruned": unpruned}
        show_rule_set(forest, [option for option, value in given.items() if value])
        return
    release = Release.load(forest)
    number = (tree or 1) - 1
    if number >= len(release.forest.trees):
        raise PlanError(f"--tree: got {tree}; the forest has the trees 1 to {len(release.forest.trees)}.")
    if report is not None:
        from hedgerow.plots.report import html_report

        report.write_text(html_report(release), encoding="utf-8")
        say(f"wrote {report}: a report with the certificate and pictures of what it has learnt")
        return
    if certificate:
        show_certificate(release)
        return
    if attribute or (tree is None and release.vote == ADDITIVE):
        from hedgerow.cli.explain import show_effects

        if tree is not None:
            raise PlanError("--attribute and --tree: expected one of the two.")
        if output is None and not attribute:
            summary(release)
        show_effects(release, attribute or [], output)
        return
    if output is None:
        if tree is None:
            summary(release)
            say()
        from hedgerow.plots.draw import tree_text

        say(tree_text(release.forest, number, depth, removed=None if unpruned else release.removed))
        return
    output.write_text(_picture(release, number, depth, not unpruned, output.suffix.lower()), encoding="utf-8")
    say(f"wrote {output}: tree {number + 1}, {depth} levels")


def format_of(path: Path) -> str:
    """What a file says that it is; nothing where it is no document."""
    from hedgerow.errors import ReleaseError
    from hedgerow.release.files import head_of, read_document

    try:
        return head_of(read_document(path)).format
    except ReleaseError:
        return ""


def _picture(release: Release, tree: int, depth: int, pruned: bool, suffix: str) -> str:
    if suffix == ".svg":
        from hedgerow.plots.draw import tree_svg

        return tree_svg(release.forest, tree, depth, removed=release.removed if pruned else None)
    from hedgerow.plots.report import show_page

    return show_page(release, tree, depth, pruned=pruned)


def summary(release: Release) -> None:
    from hedgerow.inference.boosted_words import forest_in_words
    from hedgerow.inference.vote import ADDITIVE

    forest = release.forest
    counts = sum(counts.size for counts in forest.counts)
    persons = release.schema.person is not None
    own, highest = release.vote == ADDITIVE, max(tree.height for tree in forest.trees)
    built = forest_in_words(len(forest.trees), release.additive if own else None)
    lines = [
        ("algorithm", f"{release.algorithm}, made by {release.made_by}"),
        ("target", f"{release.schema.target.name}: {', '.join(map(str, release.schema.target.classes))}"),
        ("attributes", ", ".join(release.schema.names)),
        *([("person", f"one value of {release.schema.person}; rows of each that count: at most {release.schema.k}")] if persons else []),
        ("forest", f"{built}; {counts:,} counts") if own else ("trees", f"{len(forest.trees)}, height {highest}, {counts:,} counts"),
        ("noise on a count", f"standard deviation {formatting.number(forest.leaf_noise_sd, 3)}" if forest.noisy else _exact(release)),
    ]
    lines.append(("importances", _importances(release)))
    lines += [(f"set: {name}", str(value)) for name, value in release.parameters.items() if value is not None]
    lines += [(f"chosen: {name}", words) for name, words in release.choices()]
    lines += [(f"released: noisy {name}", f"{value:,}") for name, value in release.released.items()]
    lines += [("content hash", release.content_hash)]
    if release.signatures:
        lines += [("signed by", who_signed([signature.key for signature in release.signatures]))]
    pairs("forest", lines)
    guarantee(release.certificate.sentence(), release.certificate.private)
    show_tables(release)
    if release.certificate.guarantee == "anonymity":
        from hedgerow.anonymity.requirement import Requirement
        from hedgerow.sharing.disclosure import disclosure
        from hedgerow.trees.paths import paths_of

        record = {name: text for name, text in (release.certificate.requirement or {}).items() if name != "by"}
        paths = paths_of(release.forest)
        shown = replace(paths, counts=None) if release.certificate.by_hits else paths
        pairs("what it tells", disclosure(shown, Requirement.from_record(record)))


def _exact(release: Release) -> str:
    return "none: but only hit and miss are real, the misses stand evenly" if release.certificate.by_hits else "none: exact"


def _importances(release: Release) -> str:
    """The attributes that tell most about the class, as far as the noise lets that be known."""
    from hedgerow.inference.text import plain, share_text

    shares, noise = sorted(release.feature_importances().items(), key=lambda item: -item[1]), release.within_noise()
    named = [f"{plain(name)} {share_text(share)}" for name, share in shares if share > 0 and name not in noise]
    more = f" and {len(named) - IMPORTANCES:,} more" if len(named) > IMPORTANCES else ""
    alone = f"; within the noise: {', '.join(map(plain, noise))}" if noise else ""
    return (", ".join(named[:IMPORTANCES]) + more or "no split stands out from the noise") + alone


def show_certificate(release: Release) -> None:
    from fractions import Fraction

    certificate = release.certificate
    guarantee(certificate.sentence(), certificate.private)
    lines = [
        ("guarantee", certificate.guarantee),
        ("ε", "not claimed" if certificate.epsilon is None else formatting.amount(Fraction(certificate.epsilon))),
        *([("δ", formatting.amount(Fraction(certificate.delta)))] if certificate.delta else []),
        ("reason", certificate.reason),
        ("neighbours", certificate.neighbours),
        ("unit", certificate.unit),
        ("sampler", certificate.sampler),
        *(("assumption", text) for text in certificate.assumptions),
        ("content hash", release.content_hash),
    ]
    pairs("certificate", lines)
    show_tables(release)
    show_recorded_signers(release)
    show_events(certificate)
