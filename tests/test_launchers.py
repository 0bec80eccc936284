"""What launchers give each process in its environment."""

import os

import pytest
from rejection import rejects

from vit_plugin.launchers import VARIABLES, read_environment


@pytest.mark.parametrize(
    ('launcher', 'given', 'missing'),
    [
        ('pytorch', {}, 'RANK'),
        ('slurm', dict(SLURM_PROCID='0'), 'SLURM_NTASKS'),
        ('mpi', {}, 'OMPI_COMM_WORLD_RANK'),
    ],
)
def test_a_launcher_that_did_not_start_this_is_a_sentence(monkeypatch, launcher, given, missing):
    for name in {name for names in VARIABLES.values() for name in names}:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with rejects(f'--launcher {launcher}: the environment has no {missing}, so'):
        read_environment(launcher)


def test_open_mpi_gives_the_rank(monkeypatch):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT'):
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)
    for name, value in zip(VARIABLES['mpi'], '382', strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv('MASTER_ADDR', 'first')
    read_environment('mpi', port=4711)
    assert [os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT')] == [
        '3',
        '8',
        '2',
        '4711',
    ]
    monkeypatch.delenv('MASTER_ADDR')
    with rejects('no MASTER_ADDR; set it to that of rank 0'):
        read_environment('mpi')


def test_a_wrong_port_is_a_sentence(monkeypatch):
    for name, value in dict(
        RANK='0', WORLD_SIZE='2', LOCAL_RANK='0', MASTER_ADDR='a', MASTER_PORT='abc'
    ).items():
        monkeypatch.setenv(name, value)
    with rejects("MASTER_PORT='abc' must be a number from 1 to 65535"):
        read_environment('pytorch')
