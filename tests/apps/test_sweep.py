"""The grid, its runs and the table, with a program in place of the training."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from vit_plugin.apps.sweep import Sweep, as_markdown, as_text
from vit_plugin.errors import ConfigError

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
HYBRID = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
RATE, DROP = 'optim_wrapper.optimizer.lr', 'model.backbone.drop_rate'

# Writes a record as a training does. It fails for one of the settings until a file says that it is
# mended.
PROGRAM = """
import json, sys
from pathlib import Path
arguments = sys.argv[1:]
folder = Path(arguments[arguments.index('--work-dir') + 1])
options = dict(option.split('=', 1) for option in arguments[arguments.index('--cfg-options') + 1:])
with open(folder / 'calls', 'a') as calls:
    print(*arguments, file=calls)
if options.get('optim_wrapper.optimizer.lr') == '0.002' and not folder.with_name('mended').exists():
    print('it runs')
    sys.exit('Error: this rate does not do')
rate = float(options.get('model.backbone.drop_rate', 0))
score = 50 + 10 * rate + int(options['randomness.seed'])
metrics = dict(last={'accuracy/top1': score}, seconds=7.)
folder.joinpath('metrics.json').write_text(json.dumps(metrics))
"""
# Ends when two of them run.
TOGETHER = """
import time
for _ in range(400):
    if len([*folder.parent.glob('*/calls')]) == 2:
        break
    time.sleep(0.05)
else:
    sys.exit('alone')
"""
ENDLESS = """
import signal, sys, time
from pathlib import Path
folder = Path(sys.argv[sys.argv.index('--work-dir') + 1])
def save(number, frame):
    folder.joinpath('saved').touch()
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, save)
folder.joinpath('runs').touch()
time.sleep(60)
"""


def make_sweep(
    folder, program=PROGRAM, configs=(DIGITS,), grid=None, seeds=1, options=None
) -> Sweep:
    (folder / 'program.py').write_text(program)
    return Sweep(configs, grid or {}, seeds, folder / 'sweep', options or {}, folder / 'program.py')


def test_only_what_failed_runs_again(tmp_path):
    sweep = make_sweep(
        tmp_path,
        grid={RATE: [1e-3, 2e-3], DROP: [0, 0.1]},
        seeds=2,
        options={'train_cfg.max_epochs': 1},
    )
    runs = sweep.runs()
    assert runs[3].folder.name == '001_vit-mini-p2_1xb16_digits_lr=0.001_drop_rate=0.1_seed1'
    assert runs[3].command[-4:] == [
        'train_cfg.max_epochs=1',
        f'{RATE}=0.001',
        f'{DROP}=0.1',
        'randomness.seed=1',
    ]
    assert sweep.train(1) == {
        run.folder: 'exit status 1: this rate does not do' for run in runs[4:]
    }
    table = as_markdown(*sweep.results()).splitlines()
    assert (
        table[0]
        == f'| config | {RATE} | {DROP} | accuracy/top1 | ± | lowest | highest | seeds | seconds |'
    )
    assert table[2].endswith('| 0.001 | 0 | 50.5 | 0.71 | 50 | 51 | 2 | 7 |')
    assert table[5].endswith('| 0.002 | 0.1 | no score |  |  |  | 0 |  |')
    (sweep.folder / 'mended').touch()
    assert sweep.train(2) == {}
    assert [(run.folder / 'calls').read_text().count('\n') for run in runs] == [
        1,
        1,
        1,
        1,
        2,
        2,
        2,
        2,
    ]
    with pytest.raises(ConfigError, match='--metric top1: .* has recorded accuracy/top1'):
        sweep.results('top1')


def test_configs_train_at_the_same_time(tmp_path):
    sweep = make_sweep(tmp_path, PROGRAM + TOGETHER, (DIGITS, HYBRID))
    assert sweep.train(2) == {}
    assert [
        Path(one.config).stem in line
        for one, line in zip(
            sweep.combinations(), as_markdown(*sweep.results()).splitlines()[2:], strict=True
        )
    ] == [True, True]


def test_a_run_that_is_killed_is_said_to_be(tmp_path):
    sweep = make_sweep(
        tmp_path,
        "import os, signal; print('well', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    )
    assert [*sweep.train(1).values()] == ['ended by SIGKILL: well']


def test_the_end_of_a_sweep_is_the_end_of_its_training(tmp_path):
    sweep = make_sweep(tmp_path, ENDLESS, seeds=2)
    first, second = (run.folder for run in sweep.runs())

    def end_when_it_runs():
        deadline = time.monotonic() + 20
        while not (first / 'runs').exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_when_it_runs).start()
    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        sweep.train(1)
    assert (first / 'saved').exists()  # it was waited for
    assert not (first / 'finished').exists()
    assert not second.exists()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_folder_of_another_sweep_is_refused(tmp_path):
    make_sweep(tmp_path).check()
    make_sweep(tmp_path).check()
    with pytest.raises(ConfigError, match='folder of another sweep'):
        make_sweep(tmp_path, seeds=3).check()


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (
            dict(grid={'model.backbone.drop_rat': [0]}),
            'takes no drop_rat .* did you mean drop_rate',
        ),
        (
            dict(grid={'randomness.seed': [5, 6]}),
            r'randomness.seed: each run of a sweep has its own seed; .* --seeds\.$',
        ),
        (
            dict(options={'randomness.seed': 7}),
            'randomness.seed: each run of a sweep has its own seed',
        ),
        (dict(grid={'train_cfg.max_epochs': [3, -1]}), 'max_epochs'),
        (dict(options={'custom_hooks': []}), 'records no metrics to compare'),
        (
            dict(options={'val_dataloader': None, 'val_evaluator': None, 'val_cfg': None}),
            'records no metrics to compare',
        ),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_what_cannot_run_is_an_error_before_anything_runs(tmp_path, change, words):
    with pytest.raises(ConfigError, match=words):
        make_sweep(tmp_path, **change).check()


def test_values_are_read_back_as_they_were():
    from mmengine.config import DictAction

    for value in (1, 1e-3, True, None, 'B/16', (1, 2), [(1, 2), 'x'], [3]):
        assert DictAction._parse_iterable(as_text(value)) == value
