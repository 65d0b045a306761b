"""`Rows`: how many rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.accounting.prices import Price
from hedgerow.queries.attacks import ONE_MORE, RIGHT, WRONG, Attack
from hedgerow.queries.query import Block, CountingQuery, Decoder, Encoder, PriceForm, QueryForm, Shapes, Sums, price_form
from hedgerow.schema.codebook import Codebook


class RowsForm(QueryForm, frozen=True, kw_only=True):
    price: PriceForm


@dataclass(frozen=True, eq=False)
class Rows(CountingQuery[int]):
    """The number of rows; of a table with persons, of those that are counted. The answer is a whole number."""

    name = "rows"
    label = "V1"
    Form = RowsForm

    def check(self, codebook: Codebook) -> None:
        return

    def zeros(self, codebook: Codebook) -> Sums:
        return [np.zeros(1, dtype=np.int64)]

    def add(self, block: Block, sums: Sums) -> None:
        sums[0][0] += len(block.codes)

    def shapes(self, codebook: Codebook) -> Shapes:
        return [(1,)]

    def answer(self, arrays: Sums) -> int:
        return int(arrays[0][0])

    def form(self, price: Price, encode: Encoder) -> QueryForm:
        return RowsForm(number=0, price=price_form(price))

    @classmethod
    def decode(cls, form: Any, decode: Decoder) -> Rows:
        return cls()

    @classmethod
    def attacks(cls) -> Sequence[Attack]:
        return [Attack(cls.name, ONE_MORE, RIGHT, WRONG, lambda codebook: cls())]
