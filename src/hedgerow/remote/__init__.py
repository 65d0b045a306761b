"""The client of data owners' services: datasets, forests, scores, counts; and tables whose rows stay there."""
