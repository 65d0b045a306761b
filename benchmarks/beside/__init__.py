"""Accuracy of all private forests side by side: same folds, same public bounds, same ε; every result is stored."""
