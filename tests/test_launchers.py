"""Environment variables from which each launcher's rank and world size are read."""

import os

import pytest
from rejection import rejects

from vit_plugin.launchers import VARIABLES, set_rank_variables


@pytest.mark.parametrize(
    ('launcher', 'variables', 'missing'),
    [
        ('pytorch', {}, 'RANK'),
        ('slurm', dict(SLURM_PROCID='0'), 'SLURM_NTASKS'),
        ('mpi', {}, 'OMPI_COMM_WORLD_RANK'),
    ],
)
def test_missing_variables_of_a_launcher_raise(monkeypatch, launcher, variables, missing):
    for name in {name for names in VARIABLES.values() for name in names}:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with rejects(f'--launcher {launcher}: the environment has no {missing}, so'):
        set_rank_variables(launcher)


def test_variables_of_open_mpi_become_those_of_torch(monkeypatch):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT'):
        monkeypatch.setenv(name, '')  # so that monkeypatch restores it
        monkeypatch.delenv(name)
    for name, value in zip(VARIABLES['mpi'], '382', strict=True):  # rank, world size, local rank
        monkeypatch.setenv(name, value)
    monkeypatch.setenv('MASTER_ADDR', 'first')
    set_rank_variables('mpi', port=4711)
    assert [os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT')] == [
        '3',
        '8',
        '2',
        '4711',
    ]
    monkeypatch.delenv('MASTER_ADDR')
    with rejects('no MASTER_ADDR; set it to that of rank 0'):
        set_rank_variables('mpi')


def test_invalid_port_raises(monkeypatch):
    for name, value in dict(
        RANK='0', WORLD_SIZE='2', LOCAL_RANK='0', MASTER_ADDR='a', MASTER_PORT='abc'
    ).items():
        monkeypatch.setenv(name, value)
    with rejects("MASTER_PORT='abc' must be a number from 1 to 65535"):
        set_rank_variables('pytorch')


def test_unknown_nodes_of_slurm_raise(monkeypatch):
    for name in (*VARIABLES['pytorch'], *VARIABLES['slurm'], 'MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.setenv(name, '0')  # so that monkeypatch restores it
    for name in ('MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.delenv(name)
    monkeypatch.delenv('SLURM_NODELIST', raising=False)
    with rejects(r"first node of .* \(no 'SLURM_NODELIST'\); set MASTER_ADDR to its address"):
        set_rank_variables('slurm')
    monkeypatch.setenv('SLURM_NODELIST', 'node[1-2]')
    monkeypatch.setenv('PATH', '/nowhere')  # as in a container, which has no scontrol
    with rejects("first node of .* 'scontrol'.*; set MASTER_ADDR"):
        set_rank_variables('slurm')
