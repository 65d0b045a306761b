"""Scripts that run inside the peers' environments, which do not have this package: they import only each other."""
