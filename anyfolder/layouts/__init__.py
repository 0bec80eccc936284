"""Layout files: ``anyfolder.yaml`` says what a folder holds, so that nothing has to be guessed."""
