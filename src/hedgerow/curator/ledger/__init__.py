"""The privacy ledger: budgets of datasets, analysts and purposes in an append-only database, and the service's other tables beside it."""
