"""Private decision forests with an exact ε. The public names, loaded when they are first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hedgerow.accounting.budget_file import BudgetFile as BudgetFile
    from hedgerow.accounting.meter import Budget as Budget
    from hedgerow.accounting.units import Unit as Unit
    from hedgerow.engines.files import CSVTable as CSVTable
    from hedgerow.engines.sql import SQLTable as SQLTable
    from hedgerow.estimators.diffpid3 import DiffPID3Classifier as DiffPID3Classifier
    from hedgerow.estimators.dpdf import DPDFClassifier as DPDFClassifier
    from hedgerow.estimators.hedgerow import HedgerowClassifier as HedgerowClassifier
    from hedgerow.estimators.id3 import ID3Classifier as ID3Classifier
    from hedgerow.estimators.local_tree import LocalTreeClassifier as LocalTreeClassifier
    from hedgerow.estimators.plain_rdt import RandomDecisionTreesClassifier as RandomDecisionTreesClassifier
    from hedgerow.estimators.private_id3 import PrivateID3Classifier as PrivateID3Classifier
    from hedgerow.estimators.private_rdt import PrivateRDTClassifier as PrivateRDTClassifier
    from hedgerow.estimators.snr import SNRForestClassifier as SNRForestClassifier
    from hedgerow.evaluation.forecast import score_error as score_error
    from hedgerow.evaluation.private import private_calibration as private_calibration
    from hedgerow.evaluation.private import private_score as private_score
    from hedgerow.evaluation.public import calibration as calibration
    from hedgerow.evaluation.scorer import private_scorer as private_scorer
    from hedgerow.exporters.export import export as export
    from hedgerow.multiparty.run import together as together
    from hedgerow.planner.advice import advise as advise
    from hedgerow.release.combining import combined_proba as combined_proba
    from hedgerow.release.merging import merge as merge
    from hedgerow.release.merging import merge_columns as merge_columns
    from hedgerow.release.public_plan import PublicPlan as PublicPlan
    from hedgerow.release.release import Release as Release
    from hedgerow.remote.connection import connect as connect
    from hedgerow.schema.attributes import Categorical as Categorical
    from hedgerow.schema.attributes import Numeric as Numeric
    from hedgerow.schema.attributes import Target as Target
    from hedgerow.schema.schema import Schema as Schema
    from hedgerow.sharing.global_model import global_model as global_model
    from hedgerow.sharing.global_models.conjunctive_rule import ConjunctiveRuleClassifier as ConjunctiveRuleClassifier
    from hedgerow.sharing.global_models.decision_table import DecisionTableClassifier as DecisionTableClassifier
    from hedgerow.sharing.global_models.encoder import SchemaEncoder as SchemaEncoder
    from hedgerow.sharing.pseudo.tables import pseudo_data as pseudo_data
    from hedgerow.sharing.rules.rule_set import RuleSet as RuleSet
    from hedgerow.training.counting import count as count

_HOME = {
    "Budget": "hedgerow.accounting.meter",
    "BudgetFile": "hedgerow.accounting.budget_file",
    "CSVTable": "hedgerow.engines.files",
    "Categorical": "hedgerow.schema.attributes",
    "ConjunctiveRuleClassifier": "hedgerow.sharing.global_models.conjunctive_rule",
    "DPDFClassifier": "hedgerow.estimators.dpdf",
    "DecisionTableClassifier": "hedgerow.sharing.global_models.decision_table",
    "DiffPID3Classifier": "hedgerow.estimators.diffpid3",
    "HedgerowClassifier": "hedgerow.estimators.hedgerow",
    "ID3Classifier": "hedgerow.estimators.id3",
    "LocalTreeClassifier": "hedgerow.estimators.local_tree",
    "Numeric": "hedgerow.schema.attributes",
    "PrivateID3Classifier": "hedgerow.estimators.private_id3",
    "PrivateRDTClassifier": "hedgerow.estimators.private_rdt",
    "RandomDecisionTreesClassifier": "hedgerow.estimators.plain_rdt",
    "PublicPlan": "hedgerow.release.public_plan",
    "Release": "hedgerow.release.release",
    "RuleSet": "hedgerow.sharing.rules.rule_set",
    "SNRForestClassifier": "hedgerow.estimators.snr",
    "SQLTable": "hedgerow.engines.sql",
    "Schema": "hedgerow.schema.schema",
    "SchemaEncoder": "hedgerow.sharing.global_models.encoder",
    "Target": "hedgerow.schema.attributes",
    "Unit": "hedgerow.accounting.units",
    "advise": "hedgerow.planner.advice",
    "calibration": "hedgerow.evaluation.public",
    "combined_proba": "hedgerow.release.combining",
    "connect": "hedgerow.remote.connection",
    "count": "hedgerow.training.counting",
    "export": "hedgerow.exporters.export",
    "global_model": "hedgerow.sharing.global_model",
    "merge": "hedgerow.release.merging",
    "merge_columns": "hedgerow.release.merging",
    "private_calibration": "hedgerow.evaluation.private",
    "private_score": "hedgerow.evaluation.private",
    "private_scorer": "hedgerow.evaluation.scorer",
    "pseudo_data": "hedgerow.sharing.pseudo.tables",
    "score_error": "hedgerow.evaluation.forecast",
    "together": "hedgerow.multiparty.run",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
