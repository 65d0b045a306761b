"""The curator, a data owner's service: the tables stay here, and every ε that leaves is in a ledger that cannot overspend."""
