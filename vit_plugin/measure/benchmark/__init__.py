"""Compare our models with other implementations: the same weights and inputs, in one process."""
