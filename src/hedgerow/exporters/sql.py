"""A release as one SELECT: values of every row, then codes, then the place in every tree, then sums, then probabilities.

Columns of numbers have a type of numbers, or text that is a number; columns of categories are compared by their text. Every name and
text of a release goes through `sql_dialects.py`; all other names in the statement are its own (k0, v0, c0, t0, s0, p0, …).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hedgerow.errors import PlanError
from hedgerow.exporters.portable import CONFIDENT, SHARES, SOFTMAX, SUMS, Portable, PortableColumn, PortableTree
from hedgerow.exporters.sql_dates import date_parts, day_number
from hedgerow.exporters.sql_dialects import Dialect, dialect_named, table_name
from hedgerow.schema.attributes import text_of

NO_BOOLEANS = "booleans, and no declared value is one"
_FAR = 40  # e^(−40) is nothing beside 1


def sql_text(forest: Portable, dialect: str = "duckdb", table: str = "rows", keep: Sequence[str] | None = None) -> str:
    """keep: the columns that stand beside the predictions; by default the attributes."""
    writer = _Writer(forest, dialect_named(dialect), [column.name for column in forest.columns] if keep is None else list(keep))
    return writer.statement(table)


class _Writer:
    def __init__(self, forest: Portable, dialect: Dialect, keep: list[str]) -> None:
        self.forest, self.sql, self.keep = forest, dialect, keep
        self.asked = forest.used
        self.used = [(j, column) for j, column in enumerate(forest.columns) if j in self.asked]
        self.classes, self.trees = range(forest.n_classes), range(len(forest.trees))
        if len(set(keep)) < len(keep):
            raise PlanError("keep: a column is named twice; expected each once.")

    def statement(self, table: str) -> str:
        kept = [f"k{i}" for i in range(len(self.keep))]
        source = f"{table_name(table, self.sql)} AS t"
        first = [f"t.{self.sql.identifier(name)} AS k{i}" for i, name in enumerate(self.keep)]
        parts: list[str] = []
        for step, columns in self._steps():
            listed = [*(kept if parts else first), *columns]
            parts.append(f"{step} AS (\n  SELECT {_lines(listed, 4) or '1 AS one'}\n  FROM {source}{self.sql.fence}\n)")
            source = step
        last = [f"k{i} AS {self.sql.identifier(name)}" for i, name in enumerate(self.keep)] + self._answer()
        head = f"-- A private decision forest, exported by Hedgerow for {self.sql.name}. What it is, and what is guaranteed:\n"
        return head + self.sql.comment(self.forest.facts) + f"WITH {', '.join(parts)}\nSELECT {_lines(last, 2)}\nFROM {source}\n"

    def _steps(self) -> Iterable[tuple[str, list[str]]]:
        yield "valued", [text for j, column in self.used for text in self._values(j, column)]
        yield "coded", [f"{self._code(j, column)} AS c{j}" for j, column in self.used]
        yield "placed", [f"{self._place(tree)} AS t{t}" for t, tree in enumerate(self.forest.trees)]
        if self.forest.finish == CONFIDENT:
            yield from self._most_confident()
        else:
            yield "added", [f"{self._sum(i)} AS s{i}" for i in range(len(self.forest.base))]
            yield from self._shares()

    # ------------------------------------------------------------ values to codes

    def _values(self, j: int, column: PortableColumn) -> list[str]:
        name = f"t.{self.sql.identifier(column.name)}"
        if column.edges is None:
            if {"true", "false"} & column.codes.keys():
                return [f"{self.sql.as_text(name)} AS v{j}"]
            return [f"{self.sql.as_text_of_no_booleans(name, f'column {column.name} holds {NO_BOOLEANS}{self.sql.where_from}')} AS v{j}"]
        if column.date is None:
            return [f"{self.sql.as_number(name)} AS v{j}"]
        return [f"{self.sql.as_number(self.sql.as_text(name))} AS v{j}", *date_parts(self.sql, name, column.date, j)]

    def _code(self, j: int, column: PortableColumn) -> str:
        if column.edges is None:
            return self._category(column, f"v{j}")
        x = f"v{j}" if column.date is None else day_number(j)
        nan = f"CAST('NaN' AS {self.sql.double})"
        return f"CASE WHEN {x} IS NULL OR {x} = {nan} THEN {column.missing} ELSE {self._cell(x, column.edges, 0)} END"

    def _cell(self, x: str, edges: list[float], first: int) -> str:
        """How many edges are not above x, halving them each time."""
        if not edges:
            return str(first)
        middle = len(edges) // 2
        below, above = self._cell(x, edges[:middle], first), self._cell(x, edges[middle + 1 :], first + middle + 1)
        return f"CASE WHEN {x} < {self.sql.number(edges[middle])} THEN {below} ELSE {above} END"

    def _category(self, column: PortableColumn, text: str) -> str:
        known = {self.sql.text(spelling): code for spelling, code in column.codes.items() if self.sql.can_hold(spelling)}
        whens = [f"WHEN {text} IS NULL OR {text} = '' THEN {column.missing}"]
        whens += [f"WHEN {text} = {spelling} THEN {code}" for spelling, code in known.items()]
        return f"CASE {' '.join(whens)} ELSE {column.other} END"

    # ------------------------------------------------------------ codes to numbers

    def _place(self, tree: PortableTree, node: int = 0) -> str:
        if tree.leaves is not None:
            return self._leaf(tree)
        if node < 0 or not tree.attribute:
            return str(~node if node < 0 else 0)
        code = f"c{tree.attribute[node]}"
        ways: dict[int, list[int]] = {}
        for number, to in enumerate(tree.branch[node]):
            ways.setdefault(to, []).append(number)
        *others, last = sorted(ways.items(), key=lambda way: len(way[1]))
        whens = [f"WHEN {_among(code, numbers)} THEN {self._place(tree, to)}" for to, numbers in others]
        return f"CASE {' '.join(whens)} ELSE {self._place(tree, last[0])} END"

    def _leaf(self, tree: PortableTree) -> str:
        """Where all nodes of a level ask the same, one question for each level: programs plan that far sooner than a nest of all nodes."""
        digits, stride = [], 1
        for j, radix, all_answers in reversed(tree.levels):
            answers = all_answers if j in self.asked else all_answers[:1]  # of a column that changes nothing anywhere
            ways = {way: [code for code, answer in enumerate(answers) if answer == way] for way in sorted(set(answers))}
            last = max(ways, key=lambda way: len(ways[way]))
            whens = [f"WHEN {_among(f'c{j}', codes)} THEN {way * stride}" for way, codes in ways.items() if way != last]
            digits.append(f"CASE {' '.join(whens)} ELSE {last * stride} END" if whens else str(last * stride))
            stride *= radix
        return " + ".join(reversed(digits))

    def _entry(self, t: int, number: int) -> str:
        tree = self.forest.trees[t]
        values = tree.values if tree.leaves is None else tree.leaves
        return self.sql.entry(self.sql.array(values[:, number].tolist()), f"t{t}")

    def _sum(self, number: int) -> str:
        says = [t for t in self.trees if self.forest.trees[t].values[:, number].any()]
        return " + ".join([self.sql.number(self.forest.base[number]), *(self._entry(t, number) for t in says)])

    # ------------------------------------------------------------ numbers to probabilities

    def _shares(self) -> Iterable[tuple[str, list[str]]]:
        forest, classes = self.forest, self.classes
        if forest.finish == SHARES:
            yield "shared", [f"s{c} AS p{c}" for c in classes]
            return
        if forest.finish == SOFTMAX:
            yield "highest", [*(f"s{c}" for c in classes), f"{_greatest(f's{c}' for c in classes)} AS top"]
            yield "raised", [f"CASE WHEN top - s{c} < {_FAR} THEN exp(s{c} - top) ELSE 0e0 END AS q{c}" for c in classes]
        elif forest.finish == SUMS:
            yield "raised", [f"CASE WHEN s{c} > 0 THEN s{c} ELSE 0e0 END AS q{c}" for c in classes]
        else:
            n = forest.n_classes
            total = " + ".join(f"s{n + c}" for c in classes)
            yield "counted", [*(f"s{i}" for i in range(2 * n)), f"{total} AS votes"]
            yield "raised", [f"CASE WHEN votes > 0 THEN s{n + c} / votes ELSE 0e0 END + 1e-9 * s{c} AS q{c}" for c in classes]
        yield "totalled", [*(f"q{c}" for c in classes), f"{' + '.join(f'q{c}' for c in classes)} AS total"]
        otherwise = forest.prior if forest.finish == SUMS else [0.0] * forest.n_classes
        yield "shared", [f"CASE WHEN total > 0 THEN q{c} / total ELSE {self.sql.number(otherwise[c])} END AS p{c}" for c in classes]

    def _most_confident(self) -> Iterable[tuple[str, list[str]]]:
        """The first tree with the highest share; where that is even between classes, the mean over all trees."""
        n, trees, classes = self.forest.n_classes, self.trees, self.classes
        sure = [f"{self._entry(t, n)} AS h{t}" for t in trees]
        label = [f"{self._entry(t, n + 1)} AS l{t}" for t in trees]
        mean = [f"({' + '.join(self._entry(t, c) for t in trees)}) / {self.sql.number(len(trees))} AS m{c}" for c in classes]
        places, marks, means = [f"t{t}" for t in trees], [f"l{t}" for t in trees], [f"m{c}" for c in classes]
        heights = [f"h{t}" for t in trees]
        yield "sure", [*places, *sure, *label, *mean]
        yield "highest", [*places, *heights, *marks, *means, f"{_greatest(heights)} AS top"]
        winner = " ".join(f"WHEN h{t} = top THEN {t}" for t in trees)
        its_label = " ".join(f"WHEN h{t} = top THEN l{t}" for t in trees)
        yield "won", [*places, *heights, *marks, *means, "top", f"CASE {winner} END AS w", f"CASE {its_label} END AS lw"]
        shares = [f"CASE w {' '.join(f'WHEN {t} THEN {self._entry(t, c)}' for t in trees)} END AS q{c}" for c in classes]
        other = " OR ".join(f"(h{t} = top AND l{t} <> lw)" for t in trees)
        yield "compared", [*means, "top", *shares, f"CASE WHEN {other} THEN 1 ELSE 0 END AS tied"]
        even = " + ".join(f"CASE WHEN q{c} = top THEN 1 ELSE 0 END" for c in classes)
        yield "judged", [*means, *(f"q{c}" for c in classes), f"CASE WHEN tied = 1 OR {even} > 1 THEN 1 ELSE 0 END AS even"]
        yield "shared", [f"CASE WHEN even = 1 THEN m{c} ELSE q{c} END AS p{c}" for c in classes]

    def _answer(self) -> list[str]:
        """The class, and a column for the probability of each."""
        classes = self.forest.classes
        alike = len({type(value) for value in classes}) == 1
        values = [self.sql.value(value if alike else text_of(value)) for value in classes]
        highest = _greatest(f"p{c}" for c in self.classes)
        whens = " ".join(f"WHEN p{c} = {highest} THEN {value}" for c, value in enumerate(values[:-1]))
        label = f"CASE {whens} ELSE {values[-1]} END" if whens else values[0]
        names = [f"probability_{value if isinstance(value, str) else text_of(value)}" for value in classes]
        shares = [f"p{c} AS {self.sql.identifier(name)}" for c, name in enumerate(names)]
        return [f"{label} AS {self.sql.identifier(f'predicted_{self.forest.target}')}", *shares]


def _among(code: str, numbers: list[int]) -> str:
    """Ascending numbers as ranges. (DuckDB makes a join of each long IN, and plans for minutes.)"""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return " OR ".join(_range(code, first, last) for first, last in ranges)


def _range(code: str, first: int, last: int) -> str:
    if first == last:
        return f"{code} = {first}"
    return f"{code} < {last + 1}" if first == 0 else f"{code} BETWEEN {first} AND {last}"


def _greatest(names: Iterable[str]) -> str:
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"greatest({', '.join(listed)})"


def _lines(columns: Sequence[str], indent: int) -> str:
    return (",\n" + " " * indent).join(columns)
