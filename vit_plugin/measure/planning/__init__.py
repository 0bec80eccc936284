"""Plan a training on many devices from its config, without the devices."""
