"""Initialization of process groups, time-outs, and results that rank 0 shares."""

import argparse
import socket
import time

import pytest
import torch
import torch.distributed as dist
from mmengine.config import Config, DictAction
from ranks import on_ranks
from rejection import rejects

from vit_plugin.engine.distributed import (
    DIST_TIMEOUT,
    dist_settings,
    from_rank_0,
    init_distributed,
    read_timeout,
    report_with_rank,
)
from vit_plugin.engine.faults.explain import explain_error
from vit_plugin.errors import ConfigError


@pytest.fixture
def address(monkeypatch) -> str:
    """Set the environment of a single process that Slurm has started, and return its address."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        port = listener.getsockname()[1]
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'TORCHELASTIC_USE_AGENT_STORE'):
        monkeypatch.setenv(name, '')
    for name, value in dict(
        MASTER_ADDR='127.0.0.1', MASTER_PORT=port, SLURM_PROCID=0, SLURM_NTASKS=1, SLURM_LOCALID=0
    ).items():
        monkeypatch.setenv(name, str(value))
    return f'127.0.0.1:{port}'


def test_time_out_is_that_of_the_config_or_ten_minutes():
    assert (
        read_timeout({})
        == read_timeout(dict(dist_cfg=None))
        == read_timeout(dict(dist_cfg=dict(backend='nccl')))
        == 600
    )
    assert read_timeout(dict(dist_cfg=dict(timeout=90))) == 90


def test_time_out_applies_to_gloo(address):
    init_distributed('slurm', dict(dist_cfg=dict(backend='nccl', timeout=90)))
    try:
        assert dist.get_backend() == 'gloo'
        group = dist.distributed_c10d._get_default_group()
        assert group._get_backend(torch.device('cpu')).options._timeout.total_seconds() == 90
    finally:
        dist.destroy_process_group()


def test_cfg_options_set_two_backends():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    cfg = Config(dict(env_cfg=dict(dist_cfg=dict(backend='nccl'))))
    arguments = ['--cfg-options', 'env_cfg.dist_cfg.backend=cpu:gloo,cuda:nccl']
    cfg.merge_from_dict(parser.parse_args(arguments).cfg_options)
    assert dist_settings(cfg.env_cfg) == dict(backend='cpu:gloo,cuda:nccl', timeout=DIST_TIMEOUT)


@pytest.mark.parametrize(
    ('rank', 'words'),
    [
        (0, 'only 1 of 2 processes came within env_cfg.dist_cfg.timeout; start all of them'),
        (
            1,
            'rank 0 did not answer at {} within env_cfg.dist_cfg.timeout; start all processes, '
            'and check that MASTER_ADDR',
        ),
    ],
)
def test_missing_process_raises_within_the_time_out(address, monkeypatch, rank, words):
    monkeypatch.setenv('SLURM_PROCID', str(rank))
    monkeypatch.setenv('SLURM_NTASKS', '2')
    begin = time.monotonic()
    with pytest.raises(RuntimeError) as error:
        init_distributed('slurm', dict(dist_cfg=dict(timeout=1)))
    assert time.monotonic() - begin < 300  # where the default is 600
    assert words.format(address) in explain_error(error.value)


@pytest.mark.parametrize(
    ('environment', 'waits', 'report'),
    [
        ({}, False, 'a'),
        (dict(RANK='0', LOCAL_RANK='0', WORLD_SIZE='4'), False, 'a'),
        (dict(RANK='2', LOCAL_RANK='0', WORLD_SIZE='4'), False, 'rank 2 of 4: a'),
        (dict(RANK='3', LOCAL_RANK='1', WORLD_SIZE='4'), True, 'rank 3 of 4: a'),
        (dict(RANK='1'), False, 'rank 1 of ?: a'),
    ],
)
def test_only_other_processes_of_a_machine_wait_before_reporting(
    monkeypatch, environment, waits, report
):
    sleeps: list[float] = []
    monkeypatch.setattr(time, 'sleep', sleeps.append)
    for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE'):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert report_with_rank('a') == report
    assert bool(sleeps) == waits


def share_from_rank_0(folder: str) -> None:
    """Assert that all ranks get the result or the error of rank 0.

    In the other ranks, any error of rank 0 becomes a ConfigError.
    """
    assert from_rank_0(lambda: dist.get_rank()) == 0
    with rejects('no room'):
        from_rank_0(reject)
    with pytest.raises(
        ZeroDivisionError if dist.get_rank() == 0 else ConfigError, match='division by zero'
    ):
        from_rank_0(lambda: 1 / 0)


def reject() -> None:
    raise ConfigError('no room')


def test_all_ranks_get_the_result_of_rank_0(tmp_path):
    on_ranks(2, tmp_path, share_from_rank_0, str(tmp_path))
