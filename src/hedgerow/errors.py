"""Every exception and warning of the package, in one place.

    HedgerowError
    ├── SchemaError (ValueError)          the public description of a table is wrong or missing
    ├── TableError (ValueError)           a table does not fit its schema, or cannot be opened
    ├── PlanError (ValueError)            a request that cannot be planned: refused before anything is spent
    ├── BudgetError (ValueError)          a privacy budget cannot pay, or its file is not usable
    │   └── LedgerError                   a curator's ledger cannot be used, or a step that its history does not allow
    ├── CuratorError                      a data owner's service cannot be reached, or refuses
    ├── TogetherError                     owners who count together cannot begin, or cannot finish
    ├── ReleaseError (ValueError)         a release document is damaged, hostile or of an unknown version
    │   └── MergeError                    releases that cannot be put together
    ├── KeyFileError (ValueError)         a key for signatures cannot be used
    ├── ExperimentError (ValueError)      an experiment is not known, or its stored results cannot be used
    └── AuditError (ValueError)           an attack cannot be made: no such pair of tables, or an output that cannot be looked into

    HedgerowWarning (UserWarning)
    ├── UnreviewedSchemaWarning           domains were read from private rows: no ε is claimed
    ├── DraftWarning                      a schema was read from private rows, and what was changed or left out
    ├── FractionWarning                   an ε was given as the float 1/3, which is a decimal near it
    ├── LargeDeltaWarning                 a δ above one over the number of rows: the guarantee may fail for whole rows
    ├── NoBudgetWarning                   rows were read without one shared budget to keep the total
    ├── SchemaMismatchWarning             the released counts lack many rows: the schema does not fit the table
    ├── RepeatedRowsWarning               row numbers of a data frame occur several times: rows may have been copied
    ├── SeenRowsWarning                   a forest is scored on the rows that it was trained on
    ├── UnclearScoreWarning               noise hides some classes from a score, or all of it
    ├── TransformerWarning                what stands in front of an estimator has learnt from its rows without noise
    ├── SharedPersonsWarning              cross-validation may learn from rows of the persons whom it scores
    ├── ExactScoreWarning                 a score is an exact look at rows: no budget pays for it
    ├── MissingColumnsWarning             rows are classified without some columns
    ├── UnknownValuesWarning              more than a tenth of the rows that are classified have no declared value in a column
    └── LargeEpsilonWarning               an ε that protects hardly at all

A message says what is wrong, what was got, what was expected and what to do next. It never holds a value, a count or a
length that was read from private rows.
"""

from __future__ import annotations


class HedgerowError(Exception):
    """Base of every error raised on purpose by hedgerow."""


class SchemaError(HedgerowError, ValueError):
    """The public description of a table is wrong or missing."""


class TableError(HedgerowError, ValueError):
    """A table does not have the declared columns, or cannot be opened."""


class PlanError(HedgerowError, ValueError):
    """A request that can be refused before any budget is spent."""


class BudgetError(HedgerowError, ValueError):
    """A privacy budget cannot pay what was asked, or its file cannot be used."""


class LedgerError(BudgetError):
    """A ledger cannot be opened or written, or a step does not follow from its entries. What merely costs too much is a BudgetError."""


class CuratorError(HedgerowError):
    """A data owner's service cannot be reached or has refused. status, code: of its answer, 0 and "" where there was none.

    charged: of a job that failed, whether it has cost something; None where that is not known

    What a budget cannot pay is a BudgetError there too, and a request that cannot be planned a PlanError.
    """

    def __init__(self, message: str, status: int = 0, code: str = "", charged: bool | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.charged = status, code, charged


class TogetherError(HedgerowError):
    """Owners who count together cannot begin, or cannot finish: the message says who, and whether anything was spent."""


class ReleaseError(HedgerowError, ValueError):
    """A release document cannot be trusted or understood."""


class MergeError(ReleaseError):
    """Releases that cannot be put together: the message says what differs."""


class KeyFileError(HedgerowError, ValueError):
    """A key for signatures cannot be read, written or used."""


class ExperimentError(HedgerowError, ValueError):
    """An experiment is not known, or its stored results cannot be read or do not belong together."""


class AuditError(HedgerowError, ValueError):
    """An attack on a training function cannot be made."""


class HedgerowWarning(UserWarning):
    """Base of every warning given on purpose by hedgerow. paid: the score it is about, of one that was made an error: it is paid for"""

    paid: object = None


class UnreviewedSchemaWarning(HedgerowWarning):
    """Domains were read from private rows, so no differential privacy is claimed."""


class DraftWarning(HedgerowWarning):
    """A schema was drafted from rows: it is as private as they are, and says what was taken for what and left out."""


class FractionWarning(HedgerowWarning):
    """An amount is a float that stands near a fraction and is not exactly it: "1/3", as text, is."""


class SchemaMismatchWarning(HedgerowWarning):
    """The released counts lack many rows: they hold values that the schema does not declare."""


class SeenRowsWarning(HedgerowWarning):
    """A forest is scored on the rows that it was trained on, which flatter it. Given before anything is paid."""


class RepeatedRowsWarning(HedgerowWarning):
    """Row numbers of a data frame occur several times: rows may have been copied, and ε does not hold for a row that counts twice."""


class UnclearScoreWarning(HedgerowWarning):
    """Noise hides some classes, which a mean over the classes leaves out; or a whole score that a search goes by."""


class LargeDeltaWarning(HedgerowWarning):
    """A δ is so large that publishing whole rows of some people would keep the guarantee. Given before anything is paid."""


class NoBudgetWarning(HedgerowWarning):
    """Rows are read without one budget that adds up what all requests spend."""


class MissingColumnsWarning(HedgerowWarning):
    """Rows are classified by the columns that they have; others are missing from the table."""


class UnknownValuesWarning(HedgerowWarning):
    """In a column of rows that are classified, many values are undeclared, not readable, or missing where no `missing` is declared."""


class LargeEpsilonWarning(HedgerowWarning):
    """An ε protects hardly at all."""


class TransformerWarning(HedgerowWarning):
    """A transformer in front of a private estimator has learnt from the rows without noise: no differential privacy is claimed."""


class SharedPersonsWarning(HedgerowWarning):
    """Cross-validation may have rows of one person in what is learnt from and in what is scored."""


class ExactScoreWarning(HedgerowWarning):
    """A score is an exact look at rows that may be private: no budget pays for it."""
