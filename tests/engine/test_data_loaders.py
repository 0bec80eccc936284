"""The runner's data loaders take any number of workers, and leave no files behind."""

import os
from multiprocessing.util import get_temp_dir
from pathlib import Path

import pytest
import torch
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import Runner


def loader_cfg(workers: int) -> dict:
    data = dict(type='vit_plugin.Digits', split='val', indices=8, pipeline=[])
    return dict(
        batch_size=2,
        num_workers=workers,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=data,
        collate_fn=dict(type='default_collate'),
    )


def test_more_workers_than_cores_do_not_warn():
    batch = next(iter(Runner.build_dataloader(loader_cfg((os.cpu_count() or 1) + 1))))
    assert len(batch['img']) == 2


def test_sockets_of_workers_are_in_the_temporary_folder():
    loader = Runner.build_dataloader(loader_cfg(2))
    # Listed before the workers start, since the first one to finish opens its socket.
    before = {*Path(get_temp_dir()).iterdir()}
    batches = iter(loader)
    assert torch.is_tensor(next(batches)['img'])
    assert {*Path(get_temp_dir()).iterdir()} - before


@pytest.mark.filterwarnings('ignore')
def test_data_that_fill_no_batch_raise(tmp_path):
    options = {'train_dataloader.batch_size': 100, 'train_dataloader.drop_last': True}
    runner = build(tiny_cfg(tmp_path, **options))
    with rejects('its 64 samples do not fill a batch of 100 in 1 process; give a smaller'):
        runner.train()
