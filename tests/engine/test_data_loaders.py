"""The runner's data loaders: any number of workers, no warning, nothing left behind."""

import os
from multiprocessing.util import get_temp_dir
from pathlib import Path

import torch

from vit_plugin.engine import Runner


def images(workers: int) -> dict:
    data = dict(type='vit_plugin.Digits', split='val', indices=8, pipeline=[])
    return dict(
        batch_size=2,
        num_workers=workers,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=data,
        collate_fn=dict(type='default_collate'),
    )


def test_more_workers_than_cores_are_no_warning():
    batch = next(iter(Runner.build_dataloader(images((os.cpu_count() or 1) + 1))))
    assert len(batch['img']) == 2


def test_the_sockets_of_workers_are_in_a_folder_that_this_process_removes():
    loader = Runner.build_dataloader(images(2))
    # Before the workers start: the first one to finish opens its socket.
    before = {*Path(get_temp_dir()).iterdir()}
    batches = iter(loader)
    assert torch.is_tensor(next(batches)['img'])
    assert {*Path(get_temp_dir()).iterdir()} - before
