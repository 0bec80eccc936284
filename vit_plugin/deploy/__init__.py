"""Deploy a model with its preprocessing: as a graph, an exported file, or a hub folder."""
