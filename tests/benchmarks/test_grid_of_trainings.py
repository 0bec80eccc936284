"""Grids of trainings and their table, with a program in place of the training."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rejection import rejects

from benchmarks.grid_of_trainings import TRAIN_COMMAND, check, runs_of, table, train
from vit_plugin.engine.faults.preemption import Preempted

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
RATE, DROP = 'optim_wrapper.optimizer.lr', 'model.backbone.drop_rate'

# Writes the record of a training. It fails for the rate 0.002 until the file 'fixed' exists.
PROGRAM = """
import json, sys
from pathlib import Path
arguments = sys.argv[1:]
folder = Path(arguments[arguments.index('--work-dir') + 1])
options = dict(option.split('=', 1) for option in arguments[arguments.index('--cfg-options') + 1:])
with open(folder / 'calls', 'a') as calls:
    print(*arguments, file=calls)
if options.get('optim_wrapper.optimizer.lr') == '0.002' and not folder.with_name('fixed').exists():
    sys.exit('Error: this rate is too high')
score = 50 + 10 * float(options['model.backbone.drop_rate']) + int(options['randomness.seed'])
record = dict(last={'accuracy/top1': score}, seconds=90)
folder.joinpath('metrics.json').write_text(json.dumps(record))
"""
# Ends when two processes of it run at the same time.
TOGETHER = """
import sys, time
from pathlib import Path
folder = Path(sys.argv[sys.argv.index('--work-dir') + 1])
folder.joinpath('runs').touch()
for _ in range(4000):
    if len([*folder.parent.glob('*/runs')]) == 2:
        sys.exit()
    time.sleep(0.05)
sys.exit('alone')
"""
# Sends SIGTERM to the sweep, and writes 'saved' when it receives SIGTERM itself.
STOPPED = """
import os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[sys.argv.index('--work-dir') + 1])
if (folder / 'saved').exists():
    sys.exit()
def save(number, frame):
    (folder / 'saved').touch()
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, save)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def program(folder: Path, text: str) -> tuple[str, str]:
    """Write a program, and return the command that runs it in place of a training."""
    path = folder / 'program.py'
    path.write_text(text)
    return sys.executable, str(path)


def test_the_training_command_starts(tmp_path):
    env = {**os.environ, 'PYTHONPATH': str(Path.cwd())}
    done = subprocess.run(
        [*TRAIN_COMMAND, '--help'], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('usage: vit-plugin train --data FOLDER')


def test_only_failed_runs_are_repeated(tmp_path):
    command = program(tmp_path, PROGRAM)
    # 2 rates x 2 drop rates x 2 seeds; the last four have the rate that fails.
    runs = [*runs_of([DIGITS], {RATE: [1e-3, 2e-3], DROP: [0, 0.1]}, 2, tmp_path)]
    assert runs[3].folder.name == '001_vit-mini-p2_1xb16_digits_lr=0.001_drop_rate=0.1_seed1'
    options = {'train_cfg.max_epochs': 1}
    failed = train(runs, options, 2, command)
    assert failed == {run.folder: 'status 1: this rate is too high' for run in runs[4:]}
    call = (runs[3].folder / 'calls').read_text()
    assert f'--resume --cfg-options train_cfg.max_epochs=1 {RATE}=0.001 {DROP}=0.1 ' in call
    assert call.endswith(' randomness.seed=1\n')
    lines = table(runs).splitlines()
    assert lines[0] == f'| config | {RATE} | {DROP} | accuracy/top1 | ± | of each seed | minutes |'
    assert lines[2].endswith('| 0.001 | 0 | 50.5 | 0.71 | 50, 51 | 1.5 |')
    assert lines[5].endswith('| 0.002 | 0.1 | no score |  |  |  |')
    (tmp_path / 'fixed').touch()
    assert train(runs, options, 1, command) == {}
    calls = [(run.folder / 'calls').read_text().count('\n') for run in runs]
    assert calls == [1, 1, 1, 1, 2, 2, 2, 2]
    with rejects(r'--metric top1: .* has recorded accuracy/top1'):
        table(runs, 'top1')


def test_jobs_run_at_the_same_time(tmp_path):
    runs = [*runs_of([DIGITS], {}, 2, tmp_path)]
    assert train(runs, {}, 2, program(tmp_path, TOGETHER)) == {}


def test_sigterm_is_passed_on_and_the_sweep_continues(tmp_path):
    runs = [*runs_of([DIGITS], {}, 2, tmp_path)]
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Preempted) as stopped:
        train(runs, {}, 1, program(tmp_path, STOPPED))
    assert stopped.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == handler
    assert (runs[0].folder / 'saved').exists()
    assert not runs[1].folder.exists()
    # Now the program ends where it would have stopped the sweep.
    command = program(tmp_path, STOPPED.replace('os.kill', 'sys.exit() or os.kill'))
    assert train(runs, {}, 1, command) == {}


def test_each_job_uses_its_share_of_the_cores(tmp_path, monkeypatch):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    monkeypatch.setattr(os, 'cpu_count', lambda: 8)
    (run,) = runs_of([DIGITS], {}, 1, tmp_path)
    command = program(tmp_path, "import os; print(os.environ['OMP_NUM_THREADS'])")
    assert train([run], {}, 2, command) == {}
    assert (run.folder / 'sweep.log').read_text() == '4\n'


def test_the_folder_of_another_sweep_raises(tmp_path):
    for _ in range(2):  # the same sweep may be started again
        check([*runs_of([DIGITS], {}, 2, tmp_path)], {}, tmp_path)
    with rejects('belongs to another sweep'):
        check([*runs_of([DIGITS], {}, 3, tmp_path)], {}, tmp_path)


@pytest.mark.parametrize(
    ('grid', 'options', 'words'),
    [
        ({'model.backbone.drop_rat': [0]}, {}, 'takes no drop_rat .* did you mean drop_rate'),
        ({'randomness.seed': [5, 6]}, {}, r'randomness.seed: each run has .* --seeds\.$'),
        ({}, {'randomness.seed': 7}, 'randomness.seed: each run has its own seed'),
        ({'train_cfg.max_epochs': [3, -1]}, {}, 'max_epochs'),
        ({}, {'custom_hooks': []}, 'records no metrics to compare'),
        (
            {},
            {'val_dataloader': None, 'val_evaluator': None, 'val_cfg': None},
            'records no metrics to compare',
        ),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_invalid_grids_raise_before_anything_runs(tmp_path, grid, options, words):
    with rejects(words):
        check([*runs_of([DIGITS], grid, 1, tmp_path)], options, tmp_path)


def test_values_survive_the_command_line():
    from mmengine.config import DictAction

    for value in (1, 1e-3, True, None, 'B/16', (1, 2), (1,), [(1, 2), 'x'], [3]):
        assert DictAction._parse_iterable(str(value)) == value
