"""Training from exact counts, without privacy: the only part of training that may import `engines/exact.py`."""
