"""What a report says about the results of DP-RF's experiment: Figure 1, and the paper's claims about it."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Table
from hedgerow_experiments.dpdf_report import Accuracies, better, cell_text, mean, minus, points, worse
from hedgerow_experiments.experiment import Claim, Result, Verdict
from hedgerow_experiments.statistics import CLEAR, Mean

BETAS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2")
SETS = {
    "car": "Car",
    "chess-krk": "Chess KRK",
    "connect-4": "Connect-4",
    "mushroom": "Mushroom",
    "nursery": "Nursery",
    "tic-tac-toe": "Tic-Tac-Toe",
    "votes": "Congressional Votes",
    "adult": "Adult",
    "bank-marketing": "Bank Marketing",
}
OURS, THEIRS = "dp-rf", "private-rdt"
MODELS = {OURS: "DP-RF", THEIRS: "Private-RDT"}
OTHER_SETS = "The paper's nine data sets are not named in its text; ours may be others, so that the figures cannot be compared one by one."


def blocks(results: Sequence[Result]) -> list[Block]:
    if not results:
        return []
    found = Accuracies(results)
    return [_picture(found), _table(found)]


def _picture(found: Accuracies) -> Figure:
    shown = []
    for name, title in SETS.items():
        series = []
        for model, called in MODELS.items():
            marks = [(float(beta), value) for beta in BETAS if (value := mean(found.runs(name, model, beta))).n]
            series.append(Series(called, [Point(beta, value.mean, CLEAR * value.error) for beta, value in marks]))
        shown.append(Panel(title, series))
    ticks = [(float(beta), beta) for beta in BETAS if beta not in ("0.05", "0.25")]
    chart = Lines("DP-RF and Private-RDT on nine data sets", shown, "privacy budget β", "accuracy", ticks, log_x=True)
    caption = (
        "Accuracy of DP-RF and Private-RDT against the privacy budget β (logarithmic) on nine data sets. Whiskers: two standard errors. "
        "Each plot has its own vertical scale."
    )
    return Figure("dprf-figure-1", chart, caption)


def _table(found: Accuracies) -> Table:
    rows = []
    for name, title in SETS.items():
        for model, called in MODELS.items():
            rows.append([title, called, *(cell_text(mean(found.runs(name, model, beta))) for beta in BETAS)])
        values = (_difference(found, name, beta) for beta in BETAS)
        rows.append([title, "difference", *(value.signed if value.n else "" for value in values)])
    return Table(["data set", "model", *(f"β = {beta}" for beta in BETAS)], rows)


def _difference(found: Accuracies, name: str, beta: str) -> Mean:
    return minus(found.runs(name, OURS, beta), found.runs(name, THEIRS, beta))


# ---------------------------------------------------------------- claims


def claims(results: Sequence[Result]) -> list[Claim]:
    found = Accuracies(results)
    cells = {(name, beta): value for name in SETS for beta in BETAS if (value := _difference(found, name, beta)).n}
    return [wins(cells), narrow(cells), best(cells), worst(cells), on_average(found)]


Cells = dict[tuple[str, str], Mean]
ALL = len(SETS) * len(BETAS)
SAME = "Within 5 points, or two standard errors, counts as the same"


def wins(cells: Cells) -> Claim:
    """Reproduced if the mean is higher as often as in the paper; how many of these are clear is told beside it."""
    text = "DP-RF is better than Private-RDT in 55 of 63 measurements (87 %)."
    if len(cells) < ALL:
        return Claim(text, "", "open")
    higher, clearly, lost = (sum(map(test, cells.values())) for test in (lambda value: value.mean > 0, better, worse))
    verdict: Verdict = "reproduced" if higher >= 55 else "partly" if clearly > lost else "not"
    losses = {name: sum(worse(cells[name, beta]) for beta in BETAS) for name in SETS}
    where = [f"{SETS[name]} {number}" for name, number in losses.items() if number]
    ours = f"a higher mean in {higher} of {ALL} ({100 * higher / ALL:.0f} %); clearly better in {clearly}, clearly worse in {lost}"
    rule = "Partly: fewer than 55, but more clear wins than clear losses."
    return Claim(text, ours, verdict, f"{OTHER_SETS} {rule}" + (f" Clear losses: {', '.join(where)}." if where else ""))


def narrow(cells: Cells) -> Claim:
    text = "Where DP-RF loses, it is sometimes by less than 1 point."
    if len(cells) < ALL:
        return Claim(text, "", "open")
    lost = [value.mean for value in cells.values() if value.mean < 0]
    few = sum(value > -0.01 for value in lost)
    ours = f"{few} of {len(lost)} lower means are lower by less than 1 point"
    return Claim(text, ours, "reproduced" if few else "not", "Sometimes: at least once.")


def same(value: Mean, paper: float) -> bool:
    return abs(value.mean - paper) <= max(0.05, CLEAR * value.error)


def best(cells: Cells) -> Claim:
    text = "At its best DP-RF beats Private-RDT by 45 points."
    if len(cells) < ALL:
        return Claim(text, "", "open")
    (name, beta), value = max(cells.items(), key=lambda item: item[1].mean)
    verdict: Verdict = "reproduced" if same(value, 0.45) else "partly" if better(value) else "not"
    ours = f"{points(value.mean)} ({SETS[name]}, β = {beta}: {value.signed})"
    return Claim(text, ours, verdict, f"{OTHER_SETS} {SAME}; another clear gain is partly.")


def worst(cells: Cells) -> Claim:
    text = "At its worst DP-RF loses by 7 points."
    if len(cells) < ALL:
        return Claim(text, "", "open")
    (name, beta), value = min(cells.items(), key=lambda item: item[1].mean)
    verdict: Verdict = "reproduced" if same(value, -0.07) else "partly" if value.mean > -0.07 else "not"
    ours = f"{points(value.mean)} ({SETS[name]}, β = {beta}: {value.signed})"
    return Claim(text, ours, verdict, f"{OTHER_SETS} {SAME}; a smaller loss is partly.")


def on_average(found: Accuracies) -> Claim:
    text = "For every data set DP-RF is better than Private-RDT on average over β."
    values = {name: minus(*(found.over_betas(name, model, BETAS) for model in (OURS, THEIRS))) for name in SETS}
    if not all(value.n for value in values.values()):
        return Claim(text, "", "open")
    higher, clearly = sum(value.mean > 0 for value in values.values()), sum(map(better, values.values()))
    verdict: Verdict = "reproduced" if higher == len(SETS) else "partly" if 2 * higher > len(SETS) else "not"
    ours = "; ".join(f"{SETS[name]} {value.signed}" for name, value in values.items())
    why = f"Higher on {higher} of {len(SETS)} data sets, clearly on {clearly}. Partly: higher on more than half."
    return Claim(text, ours, verdict, why)
