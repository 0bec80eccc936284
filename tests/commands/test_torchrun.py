"""How ``tools/torchrun.sh`` ends, with processes that only wait, crash or test a checkpoint."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS

# Reports its start in a file, waits for a signal, and exits with the signal's status.
SCRIPT = """
import os, signal, sys, time
signals = []
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: signals.append(number))
open(f"{sys.argv[1]}/started_{os.environ['RANK']}", 'w').close()
while not signals:
    time.sleep(0.05)
sys.exit(128 + signals[0])
"""


# Rank 1 crashes at the first attempt. The argument is a folder for the record that it has.
CRASHES_ONCE = """
import os, sys, time
import torch.distributed as dist
from vit_plugin.engine.distributed import init_distributed
os.environ['CUDA_VISIBLE_DEVICES'] = ''
init_distributed('pytorch', dict(dist_cfg=dict(timeout=60)))
crashed = f'{sys.argv[1]}/crashed'
if not os.path.exists(crashed):
    dist.barrier()
    if os.environ['RANK'] == '1':
        open(crashed, 'w').close()
        sys.exit(1)
dist.barrier()
"""


DIGITS = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def start(
    folder: Path, text: str = SCRIPT, processes: int = 2, **variables: object
) -> subprocess.Popen:
    """Start ``tools/torchrun.sh`` on a script, which gets the folder as its argument."""
    (folder / 'script.py').write_text(text)
    variables = {'PORT': free_port(), 'OMP_NUM_THREADS': 1, **variables}
    environment = dict(
        os.environ,
        PATH=f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
        **{name: str(value) for name, value in variables.items()},
    )
    script = os.path.relpath(folder / 'script.py', 'tools')
    return subprocess.Popen(
        ['tools/torchrun.sh', str(processes), script, str(folder)],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize(
    'number', [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.nightly)]
)
def test_signals_are_passed_on_and_give_the_status(tmp_path, number):
    (tmp_path / 'temporary').mkdir()
    launcher = start(tmp_path, TMPDIR=tmp_path / 'temporary')
    deadline = time.monotonic() + 600
    while len(list(tmp_path.glob('started_*'))) < 2:
        assert launcher.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    launcher.send_signal(number)
    output, _ = launcher.communicate(timeout=600)
    assert launcher.returncode == 128 + number, output
    assert 'Traceback' not in output
    assert not list((tmp_path / 'temporary').glob('torchelastic_*'))


@pytest.mark.nightly
def test_a_missing_host_raises_one_sentence(tmp_path):
    """Only one of two hosts is started."""
    launcher = start(tmp_path, NNODES=2, JOIN_TIMEOUT=2)
    output, _ = launcher.communicate(timeout=600)
    assert launcher.returncode == 1
    assert 'Error: the 2 machines did not find each other at 127.0.0.1:' in output.splitlines()[-1]
    assert 'Traceback' not in output


@pytest.mark.nightly
def test_two_hosts_restart_after_a_crash_on_one(tmp_path):
    common = dict(
        text=CRASHES_ONCE,
        processes=1,
        NNODES=2,
        PORT=free_port(),
        LOCAL_ADDR='127.0.0.1',
        MAX_RESTARTS=1,
        PYTHONPATH=os.getcwd(),
    )
    hosts = [start(tmp_path, NODE_RANK=number, **common) for number in range(2)]
    outputs = [host.communicate(timeout=900)[0] for host in hosts]
    assert (tmp_path / 'crashed').exists()
    assert [host.returncode for host in hosts] == [0, 0], outputs


@pytest.mark.nightly
def test_two_ranks_test_a_checkpoint_with_its_own_config(tmp_path):
    """Their results equal those of one rank, and are gathered without files."""
    pytest.importorskip('mmpretrain')
    cfg = Config.fromfile(DIGITS)
    preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
    model = MODELS.build(
        dict(cfg.model, type='mmpretrain.ImageClassifier', data_preprocessor=preprocessor)
    )
    classes = [str(number) for number in range(10)]
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=classes))
    torch.save(dict(meta=meta, state_dict=model.state_dict()), tmp_path / 'epoch_1.pth')
    accuracies = []
    for processes in (1, 2):
        command = ['test', tmp_path / 'epoch_1.pth', '--launcher', 'pytorch']
        done = subprocess.run(
            [
                *(sys.executable, '-m', 'torch.distributed.run', f'--nproc-per-node={processes}'),
                *(f'--master-port={free_port()}', '-m', 'vit_plugin', *command),
            ],
            cwd=tmp_path,
            env=dict(os.environ, PYTHONPATH=os.getcwd(), CUDA_VISIBLE_DEVICES=''),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        accuracies += re.findall(r'accuracy/top1: \S+', done.stdout + done.stderr)[-1:]
    assert accuracies[0] == accuracies[1]
    assert not (tmp_path / '.dist_test').exists()
