"""How a step changes the weights: optimizer wrappers, layer-wise decay, schedules."""
