"""Attack our own guarantee: train many times on neighbouring tables, and bound from below the ε that the outputs give away.

    from hedgerow.audit import audit, pairs_for
    audit(train, pairs_for(schema), epsilon=1, runs=5000)      train: any function from a table to an output
"""

from hedgerow.audit.attack import Audit, Finding, audit
from hedgerow.audit.neighbours import Pair, Table, pairs_for

__all__ = ["Audit", "Finding", "Pair", "Table", "audit", "pairs_for"]
