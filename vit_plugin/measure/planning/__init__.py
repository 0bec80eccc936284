"""Plan a training run on many devices from its config, without them."""
