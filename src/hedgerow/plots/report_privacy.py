"""What a page says about privacy: the promise, what it means, the certificate with every charge, the budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from hedgerow import formatting
from hedgerow.accounting.meter import Budget
from hedgerow.inference.rebuild import accumulated
from hedgerow.plots.html import items, pairs, section, table
from hedgerow.plots.svg import escape
from hedgerow.release.certificate import Certificate
from hedgerow.release.parts import EVENTS_NOTE, RHO_NOTE, EventRecord
from hedgerow.release.release import Release
from hedgerow.release.signing import fingerprint
from hedgerow.sharing.disclosure import NOT_DIFFERENTIAL

_MAX_TABLES = 50


def loss_text(text: str) -> str:
    """An exact amount of a file, for people."""
    return formatting.amount(Fraction(text))


def promise(certificate: Certificate) -> str:
    kind = "promise" if certificate.private else "promise none"
    return f'<div class="{kind}"><p><strong>Guarantee:</strong> {escape(certificate.sentence())}.</p></div>'


def about_these_rows(certificate: Certificate) -> str:
    """An explanation shows somebody's row: no guarantee covers that."""
    said = "These pages show the rows that are explained: keep them as private as those rows. "
    return (
        f'<div class="promise none"><p><strong>About these rows:</strong> {said}The forest\'s own guarantee covers the rows that it was '
        f"learnt from: {escape(certificate.sentence())}.</p></div>"
    )


def meaning(certificate: Certificate) -> str:
    if certificate.guarantee == "anonymity":
        return section(
            "What this means",
            f"<ul><li>{escape(certificate.sentence())}.</li><li>{escape(NOT_DIFFERENTIAL)}</li></ul>",
        )
    if not certificate.private or certificate.epsilon is None:
        return section(
            "What this means",
            "<ul><li>Nothing here may be said to protect the people in the table: "
            f"{escape(certificate.reason)}.</li>"
            "<li>Do not publish it unless the rows themselves may be published.</li>"
            "<li>A reviewed schema of public facts and a private estimator give a release with a guarantee.</li></ul>",
        )
    factor = _factor(Fraction(certificate.epsilon))
    means = [
        f"Whatever anyone does with this release, the chance of any outcome is at most {factor} times what it would be "
        + _had_it_differed(certificate)
        + (f", plus δ = {formatting.amount(Fraction(certificate.delta))}." if certificate.delta else "."),
        "That holds whatever else they know, now or later. Predictions, rules and pictures made from it cost nothing.",
        "Every count carries noise. “1,204 ± 35” means: noise with a standard deviation of 35 was added, so that in "
        "about seven of ten cases the true number is within 35 of 1,204.",
    ]
    does_not = [
        "It does not hide what is true of people in general. If smokers are often ill, the release may say so, of "
        "smokers who are in the table and of those who are not.",
        f"Other releases from the same table are not included: their ε{' and their δ' if certificate.delta else ''} add up. A shared "
        "budget keeps that total.",
        _protected_less(certificate),
        "The schema was taken as public. If its values or bounds were copied from the rows, they are not protected.",
        "A rule describes; it does not say what causes what. The ± is the noise alone, not the chance of who is in the table.",
    ]
    left, right = f"<h3>It means</h3>{items(means)}", f"<h3>It does not mean</h3>{items(does_not)}"
    content = f'<div class="two"><div>{left}</div><div>{right}</div></div>'
    return section("What this means, and what it does not", content)


def _had_it_differed(certificate: Certificate) -> str:
    if len(certificate.parts) > 1:
        return "had any one person been left out of all the tables, or added to them"
    if certificate.of_persons:
        return "had any one person, with all of their rows, been left out of the table, or added to it"
    return "had any one row been left out of the table, or added to it"


def _protected_less(certificate: Certificate) -> str:
    if certificate.of_persons:
        return "A person with two ids in the column of persons, or a family of several, is protected less: two make twice the ε."
    return "A person with several rows, or a family with one each, is protected less: k rows make k times the ε."


def _factor(epsilon: Fraction) -> str:
    """e^ε, rounded up: a guarantee is never stated stronger than it is."""
    if epsilon > 25:
        return f"e^{formatting.amount(epsilon)} (so large that it promises little)"
    value = math.exp(float(epsilon))
    places = 3 if value < 1.1 else 2 if value < 100 else 0
    rounded = math.ceil(value * 10**places) / 10**places
    return f"{rounded:,.{places}f}"


def certificate_section(release: Release) -> str:
    certificate = release.certificate
    parts = [
        pairs(
            [
                ("guarantee", certificate.guarantee),
                ("ε", "not claimed" if certificate.epsilon is None else loss_text(certificate.epsilon)),
                *([("δ", formatting.amount(Fraction(certificate.delta)))] if certificate.delta else []),
                ("neighbours", certificate.neighbours),
                ("unit of privacy", certificate.unit),
                ("because", certificate.reason),
                ("noise sampler", certificate.sampler),
            ]
        ),
        _tables(release),
        "<h3>Every charged look at the rows</h3>",
        events_table(certificate.events) if certificate.events else '<p class="soft">None was charged.</p>',
        "<h3>Assumptions that nobody checked</h3>",
        items(certificate.assumptions) if certificate.assumptions else '<p class="soft">None is stated.</p>',
        f'<h3>Content hash (SHA-256)</h3><p class="hash">{escape(release.content_hash)}</p>',
    ]
    return section("Privacy certificate", "".join(parts))


def _tables(release: Release) -> str:
    """The tables that were counted, where there are several: who has them, what each costs, and the noise of all together."""
    parts = release.certificate.parts
    if len(parts) < 2:
        return ""
    persons = any(part.of_persons for part in parts)
    rows = [
        (
            " + ".join(part.owners) or "–",
            part.id,
            loss_text(part.epsilon) + (f", δ = {formatting.amount(part.exact_delta)}" if part.exact_delta else ""),
            part.statement,
            *([f"at most {part.k}" if part.of_persons else "1, assumed"] if persons else []),
            ", ".join(release.forest.ensembles[part.ensemble].columns) if release.forest.united else "all",
            ", ".join(fingerprint(key) for key in part.signed_by) or "nobody",
        )
        for part in parts[:_MAX_TABLES]
    ]
    more = f'<p class="soft">And {len(parts) - _MAX_TABLES:,} more.</p>' if len(parts) > _MAX_TABLES else ""
    found = accumulated(release.forest)
    noise = f"<p>Rebuilding: {escape(found.sentence())}.</p>" if found is not None else ""
    heads = ("owner", "batch", "ε", "persons disjoint", *(["rows of a person"] if persons else []), "columns", "recorded signers")
    return f"<h3>Counted tables</h3>{table(heads, rows)}{more}{noise}"


def events_table(events: Sequence[EventRecord]) -> str:
    gaussian = any(isinstance(event.rho, str) for event in events)
    rows = [
        (
            *(e.query, e.mechanism, times, e.shown[0], f"{e.queries:,}", e.shown_sensitivity, e.shown[2]),
            *([e.shown[1]] if gaussian else []),
        )
        for e, times in Counter(events).items()
    ]
    total = sum((Fraction(event.epsilon) for event in events), Fraction(0))
    heads = ("query", "mechanism", "times", "ε each", "queries", "sensitivity", "noise scale")
    note = f'<p class="soft">{escape(EVENTS_NOTE + (RHO_NOTE if gaussian else ""))}.</p>'
    if gaussian:
        return table((*heads, "ρ each"), rows) + note  # losses of both kinds are composed by concentrated privacy, not as a sum of ε
    return table(heads, rows, ("together", "", len(events), formatting.amount(total), "", "", "")) + note


def budget_section(budget: Budget) -> str:
    total, entries = budget.epsilon, budget.entries
    spent = sum((entry.cost for entry in entries), Fraction(0))
    share = min(max(float(spent / total), 0.0), 1.0) * 100
    words = f"{formatting.amount(spent)} of ε = {formatting.amount(total)} spent, {formatting.amount(total - spent)} left"
    gauge = f'<div class="gauge" role="img" aria-label="{escape(words)}"><i style="width:{share:.2f}%"></i></div>'
    if budget.delta:
        gone = sum((entry.delta for entry in entries), Fraction(0))
        gone = sum((entry.delta for entry in entries), Fraction(0))
        words += f"; {formatting.amount(gone)} of δ = {formatting.amount(budget.delta)} spent"
    if budget.unit is not None:
        words += f"; the unit is {budget.unit}"
    gauge += f"<p>{escape(words)}.</p>"
    rows = [
        (
            getattr(entry, "when", "this session"),
            entry.shown,
            formatting.amount(entry.reserved) + (f", δ = {formatting.amount(entry.delta)}" if entry.delta else ""),
            "all of it (not finished)" if entry.spent is None else formatting.amount(entry.spent),
        )
        for entry in entries
    ]
    return section("Budget", gauge + (table(("when", "what", "reserved", "spent"), rows) if rows else ""))
