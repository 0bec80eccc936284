"""``slurm_train.sh``: on a Slurm that the test starts, and with fake commands of Slurm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = 'tools/slurm_train.sh'

BENCHMARKS = Path(__file__).parents[2] / 'benchmarks'


@pytest.mark.nightly
def test_a_preempted_job_restarts_and_ends_with_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delitem(sys.modules, 'slurm', raising=False)
    import slurm
    import slurm_cluster

    packages = slurm_cluster.packages()
    if packages is None:
        pytest.skip(
            'SLURM_PACKAGES names no folder with the unpacked packages, or this is not root'
        )
    with slurm_cluster.running(packages, tmp_path / 'cluster') as cluster:
        result = slurm.preempted(cluster, tmp_path, 1)
    assert result.restarts == len(result.steps) == 1
    assert not result.differs


@pytest.fixture
def slurm_train(tmp_path):
    """Runs the script with fake commands of Slurm that print their arguments.

    Returns the status and the output.
    """
    for name in ('sbatch', 'srun', 'scontrol'):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)

    def call(*flags: str, **variables: str) -> tuple[int, str]:
        environment = dict(os.environ, PATH=f'{tmp_path}:{os.environ["PATH"]}', **variables)
        done = subprocess.run(
            [SCRIPT, 'gpu', 'name', 'config.py', str(tmp_path / 'run'), *flags],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout

    return call


def test_jobs_in_the_folder_of_another_run_need_resume(tmp_path, slurm_train):
    status, output = slurm_train()
    assert (status, output.split()[0]) == (0, 'sbatch')
    (tmp_path / 'run' / 'last_checkpoint').write_text('run/epoch_1.pth')
    status, output = slurm_train('--amp')
    assert status == 1
    assert output.startswith('Error: ')
    assert 'has the checkpoints of a run' in output
    assert slurm_train('--resume')[0] == 0


def test_a_restarted_job_resumes_from_its_own_checkpoint(tmp_path, slurm_train):
    restart = dict(VIT_PLUGIN_TOOLS='tools', SLURM_RESTART_COUNT='1')
    flags = '--resume other/epoch_5.pth'
    assert f'{flags} --launcher slurm' in slurm_train(*flags.split(), **restart)[1]
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run' / 'last_checkpoint').write_text('run/epoch_6.pth')
    # The last --resume counts.
    assert f'{flags} --resume --launcher slurm' in slurm_train(*flags.split(), **restart)[1]
