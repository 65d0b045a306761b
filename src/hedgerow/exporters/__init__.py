"""Forests that leave Python: a release written for other programs, which then predict as it does. Costs no ε."""
