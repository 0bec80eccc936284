"""Preempt a training on a real Slurm of two nodes: it must resume by itself, and end the same.

    SLURM_PACKAGES=FOLDER python benchmarks slurm [--preemptions 5]

Jobs of a partition with a higher priority preempt the training several times. Its final checkpoint
must be bit-identical to that of an undisturbed one. See ``slurm_cluster`` for the packages. It
takes about eight minutes.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import slurm_cluster
import tiny_run

HERE = Path(__file__).parent
ROOT = HERE.parent
# Variables of tools/slurm_train.sh for two ranks on two nodes without GPUs.
JOB = dict(
    GPUS='2',
    GPUS_PER_NODE='1',
    CPUS_PER_TASK='1',
    SBATCH_ARGS='--gres=none -N2',
    MASTER_ADDR='127.0.0.1',
    OMP_NUM_THREADS='1',
    PYTHONPATH=f'{ROOT}',
)
STEPS = 1000  # of a run, which takes one to two minutes
ENDED = ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL')


@dataclass(frozen=True)
class Result:
    """The outcome of a preempted run.

    Attributes:
        restarts: how often Slurm has started it again.
        steps: the steps at which it saved.
        differs: the names of values that differ from an undisturbed run.
        log: everything that the job printed.
    """

    restarts: int
    steps: Sequence[int]
    differs: Sequence[str]
    log: str


def submit(cluster: slurm_cluster.Cluster, folder: Path, name: str) -> str:
    """Submit a run of two ranks on two nodes as ``tools/slurm_train.sh`` does.

    Returns the number of the job.
    """
    work = folder / name
    tiny_run.tiny_cfg(
        work,
        'iter',
        workers=2,
        **{
            'train_cfg.max_iters': STEPS,
            'train_cfg.val_interval': 150,
            'default_hooks.checkpoint.interval': 150,
            'log_level': 'INFO',
            'log_processor': dict(by_epoch=False),
            'env_cfg.dist_cfg.timeout': 60,
        },
    ).dump(folder / f'{name}.py')
    ports = slurm_cluster.free_ports(1)
    output = cluster.run(
        str(ROOT / 'tools/slurm_train.sh'),
        'low',
        name,
        str(folder / f'{name}.py'),
        str(work),
        **JOB,
        MASTER_PORT=str(ports[0]),
        PATH=f'{Path(sys.executable).parent}:{cluster.path}',
    )
    return re.search(r'job (\d+)', output)[1]


def last_step(work: Path) -> int:
    """The last step in the logs of a run."""
    return max(
        (
            int(step)
            for log in work.glob('slurm-*.out')
            for step in re.findall(r'Iter\(train\) +\[ *(\d+)/', log.read_text())
        ),
        default=0,
    )


def preempted(cluster: slurm_cluster.Cluster, folder: Path, count: int) -> Result:
    """Preempt a run ``count`` times, and compare its end with that of an undisturbed run."""
    undisturbed = submit(cluster, folder, 'undisturbed')
    cluster.wait_for(undisturbed, *ENDED, seconds=400)
    job, work = submit(cluster, folder, 'preempted'), folder / 'preempted'
    for i in range(count):
        # Let the run go on for a part of its steps, so that the preemptions are spread over it.
        begin, deadline = last_step(work), time.monotonic() + 300
        while last_step(work) < begin + STEPS // (count + 3):
            if time.monotonic() > deadline or cluster.job(job)['JobState'] in ENDED:
                raise TimeoutError((work / f'slurm-{job}.out').read_text()[-3000:])
            time.sleep(0.2)
        other = re.search(
            r'job (\d+)',
            cluster.run(
                'sbatch', '-p', 'high', '-N2', '--exclusive', '-o', '/dev/null', '--wrap', 'sleep 1'
            ),
        )[1]
        cluster.wait_for(other, 'COMPLETED')
        cluster.wait_for(job, 'PENDING')
        # Slurm would wait two minutes before it starts the job again.
        cluster.run('scontrol', 'update', f'JobId={job}', 'StartTime=now')
        print(
            f'preemption {i + 1}: at step {last_step(work)}, {cluster.job(job)["JobState"]}',
            flush=True,
        )
    end = cluster.wait_for(job, *ENDED, seconds=400)
    log = (work / f'slurm-{job}.out').read_text()
    if end['JobState'] != 'COMPLETED':
        raise RuntimeError(f'{end["JobState"]}: {log[-3000:]}')
    differs = tiny_run.differences(
        *(tiny_run.final_checkpoint(folder / name) for name in ('undisturbed', 'preempted'))
    )
    steps = [int(step) for step in re.findall(r'SIGTERM came after step (\d+)', log)]
    return Result(int(end['Restarts']), steps, differs, log)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--preemptions', type=int, default=5)
    args = parser.parse_args()
    packages = slurm_cluster.packages()
    if packages is None:
        print(f'It needs root and the packages, see {HERE / "slurm_cluster.py"}.')
        return 1
    with (
        TemporaryDirectory() as name,
        slurm_cluster.running(packages, Path(name, 'cluster')) as cluster,
    ):
        result = preempted(cluster, Path(name), args.preemptions)
    right = result.restarts == args.preemptions == len(result.steps) and not result.differs
    print(
        f'preempted {result.restarts} times, saved at steps {result.steps}, {len(result.differs)} '
        f'values differ from an undisturbed run of {STEPS} steps'
    )
    if not right:
        print(result.differs[:20], result.log[-3000:])
    return not right


if __name__ == '__main__':
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    sys.exit(main())
