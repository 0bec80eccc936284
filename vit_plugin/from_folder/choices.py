"""The names that a command line takes, known before torch is imported."""

DIGITS = 'digits'  # a folder that is written if it is not there
TASKS = ('classification', 'detection', 'instance', 'segmentation', 'pretraining')
METHODS = ('mocov3', 'dino', 'dinov2', 'lejepa', 'mae', 'simmim', 'distill')
