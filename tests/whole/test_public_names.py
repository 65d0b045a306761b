"""The public surface: names, lazy loading, and documents that cannot drift."""

from __future__ import annotations

import subprocess
import sys

import hedgerow


def test_exactly_these_names_are_public() -> None:
    assert sorted(hedgerow.__all__) == [
        "Budget",
        "BudgetFile",
        "CSVTable",
        "Categorical",
        "ConjunctiveRuleClassifier",
        "DPDFClassifier",
        "DecisionTableClassifier",
        "DiffPID3Classifier",
        "HedgerowClassifier",
        "ID3Classifier",
        "LocalTreeClassifier",
        "Numeric",
        "PrivateID3Classifier",
        "PrivateRDTClassifier",
        "PublicPlan",
        "RandomDecisionTreesClassifier",
        "Release",
        "RuleSet",
        "SNRForestClassifier",
        "SQLTable",
        "Schema",
        "SchemaEncoder",
        "Target",
        "Unit",
        "__version__",
        "advise",
        "calibration",
        "combined_proba",
        "connect",
        "count",
        "export",
        "global_model",
        "merge",
        "merge_columns",
        "private_calibration",
        "private_score",
        "private_scorer",
        "pseudo_data",
        "score_error",
        "together",
    ]
    for name in hedgerow.__all__:
        assert getattr(hedgerow, name) is not None
    for name in hedgerow.__all__:
        if name != "__version__":
            assert getattr(hedgerow, name).__doc__, name


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, hedgerow; print([m for m in ('numpy', 'numba', 'sklearn', 'duckdb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
