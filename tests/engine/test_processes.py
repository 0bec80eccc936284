"""How processes meet, without a second process."""

import os
import socket
import time

import pytest
import torch
import torch.distributed as dist

from vit_plugin.engine import processes
from vit_plugin.engine.processes import is_first_to_say, meet, read_environment, timeout_of
from vit_plugin.errors import ConfigError


@pytest.fixture
def place(monkeypatch) -> str:
    """The environment of rank 0 of one process that Slurm has started, and the place where it meets the others."""
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        port = listener.getsockname()[1]
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'TORCHELASTIC_USE_AGENT_STORE'):
        monkeypatch.setenv(name, '')
    for name, value in dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=port, SLURM_PROCID=0, SLURM_NTASKS=1,
                            SLURM_LOCALID=0).items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(processes, '_server', [])
    return f'127.0.0.1:{port}'


def test_the_time_out_is_set_or_ten_minutes():
    assert timeout_of({}) == timeout_of(dict(dist_cfg=None)) == timeout_of(dict(dist_cfg=dict(backend='nccl'))) == 600
    assert timeout_of(dict(dist_cfg=dict(timeout=90))) == 90


def test_the_time_out_holds_on_a_cpu(place):
    meet('slurm', dict(dist_cfg=dict(backend='nccl', timeout=90)))
    try:
        assert dist.get_backend() == 'gloo'
        group = dist.distributed_c10d._get_default_group()
        assert group._get_backend(torch.device('cpu')).options._timeout.total_seconds() == 90
        assert [is_first_to_say(text) for text in 'aab'] == [True, False, True]
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(('rank', 'words'), [
    (0, r'Rank 1 of 2 did not come to {} within 1 s; start all 2 processes, or give env_cfg.dist_cfg.timeout=SECONDS'),
    (1, r'Rank 0 did not answer at {} within 1 s; start all 2 processes, and see that MASTER_ADDR and MASTER_PORT'),
])
def test_who_does_not_come_is_named_in_time(place, monkeypatch, rank, words):
    monkeypatch.setenv('SLURM_PROCID', str(rank))
    monkeypatch.setenv('SLURM_NTASKS', '2')
    begin = time.monotonic()
    with pytest.raises(ConfigError, match=words.format(place)):
        meet('slurm', dict(dist_cfg=dict(timeout=1)))
    assert time.monotonic() - begin < 30  # where the default is 600


@pytest.mark.parametrize(('launcher', 'given', 'missing'), [
    ('pytorch', {}, 'RANK'), ('slurm', dict(SLURM_PROCID='0'), 'SLURM_NTASKS'), ('mpi', {}, 'OMPI_COMM_WORLD_RANK'),
])
def test_a_launcher_that_did_not_start_this_is_a_sentence(monkeypatch, launcher, given, missing):
    for name in {name for names in processes.VARIABLES.values() for name in names}:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f'--launcher {launcher}: the environment has no {missing}, so'):
        read_environment(launcher)


def test_open_mpi_gives_the_rank(monkeypatch):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT'):
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)
    for name, value in zip(processes.VARIABLES['mpi'], '382', strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv('MASTER_ADDR', 'first')
    read_environment('mpi', port=4711)
    assert [os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT')] == ['3', '8', '2', '4711']
    monkeypatch.delenv('MASTER_ADDR')
    with pytest.raises(ConfigError, match='no MASTER_ADDR; set it to the host of rank 0'):
        read_environment('mpi')


@pytest.mark.parametrize(('environment', 'words'), [
    (dict(RANK='5', WORLD_SIZE='2'), 'RANK=5 is not below WORLD_SIZE=2'),
    (dict(RANK='one'), "RANK='one' must be a whole number"),
    (dict(MASTER_PORT='abc'), "MASTER_PORT='abc' must be a number from 1 to 65535")])
def test_a_rank_outside_of_the_world_is_told_at_once(monkeypatch, environment, words):
    for name, value in dict(dict(RANK='0', WORLD_SIZE='2', LOCAL_RANK='0', MASTER_ADDR='a'), **environment).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=words):
        read_environment('pytorch')


def test_one_process_is_always_the_first_to_say_something(monkeypatch):
    monkeypatch.setattr(processes, '_server', [])
    monkeypatch.delenv('TORCHELASTIC_USE_AGENT_STORE', raising=False)
    assert is_first_to_say('a')
    assert is_first_to_say('a')
