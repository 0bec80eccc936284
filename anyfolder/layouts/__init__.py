"""Layout files: ``anyfolder.yaml`` describes a folder, so that nothing is guessed."""
