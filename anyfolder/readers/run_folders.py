"""Folders written by trainings, which are not data."""

import os
from pathlib import Path

from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .probe_cache import NAME

# Folders written by trainings, and files in them.
RUNS = ('work_dirs', 'runs', 'wandb', 'mlruns', 'lightning_logs', 'tb_logs')
OF_RUNS = {NAME, 'data_report.json', 'last_checkpoint', 'args.yaml', 'opt.yaml', 'hparams.yaml'}


def is_run(folder: Path) -> bool:
    """True for a folder of trainings. A folder with images may be a class of this name."""
    if not folder.is_dir():
        return False
    names = set(os.listdir(folder))
    images = any(name.lower().endswith(IMAGE_SUFFIXES) for name in names)
    return not OF_RUNS.isdisjoint(names) or (folder.name in RUNS and not images)
