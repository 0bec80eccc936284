"""Learning from another model: what it returns, the losses, and the model that a run trains."""
