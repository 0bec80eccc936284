"""Plan a training on many devices from its config, without the devices.

``layouts`` makes the table of a plan. A row comes from a ``Forecast``, which fits a few traced
steps: ``traced_step`` runs a training step of a ``planned_model`` on fake tensors, and ``tracing``
counts its work and memory. ``cost`` turns these into time.
"""
