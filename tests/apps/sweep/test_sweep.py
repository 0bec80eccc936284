"""The grid, its runs in turn and as jobs, and the table, with a program in place of the training."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from vit_plugin.apps.sweep import results
from vit_plugin.apps.sweep.grid import Sweep, as_text
from vit_plugin.apps.sweep.jobs import run_here, run_on_slurm
from vit_plugin.apps.sweep.results import as_markdown, collect, write_results
from vit_plugin.errors import ConfigError

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
GRID = {'optim_wrapper.optimizer.lr': [1e-3, 2e-3], 'model.backbone.drop_rate': [0, 0.1]}

# Writes a record as a training does. It fails for one of the settings until a file says that it is mended.
PROGRAM = '''
import json, sys
from pathlib import Path
arguments = sys.argv[1:]
folder = Path(arguments[arguments.index('--work-dir') + 1])
options = dict(option.split('=', 1) for option in arguments[arguments.index('--cfg-options') + 1:])
with open(folder / 'calls', 'a') as calls:
    print(*arguments, file=calls)
if options['optim_wrapper.optimizer.lr'] == '0.002' and not folder.with_name('mended').exists():
    print('it runs')
    sys.exit('Error: this rate does not do')
score = 50 + 10 * float(options['model.backbone.drop_rate']) + int(options['randomness.seed'])
folder.joinpath('metrics.json').write_text(json.dumps(dict(
    last={'accuracy/top1': score}, max={'accuracy/top1': score + 1}, seconds=7.,
    history={'accuracy/top1': [[1, score - 9], [2, score]]}, clock=[[1, 3.], [2, 7.]])))
'''


def make_sweep(folder, program=PROGRAM, configs=(DIGITS, ), grid=None, seeds=1, options=None) -> Sweep:
    (folder / 'program.py').write_text(program)
    return Sweep(configs, grid or {}, seeds, folder / 'sweep', options or {}, folder / 'program.py')


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return make_sweep(tmp_path, grid=GRID, seeds=2, options={'train_cfg.max_epochs': 1})


def test_runs_are_all_combinations_with_all_seeds(sweep):
    assert len(sweep.runs) == 8
    assert sweep.runs[3].folder.name == '003_lr=0.001_drop_rate=0.1_seed1'
    assert len({run.folder for run in sweep.runs}) == 8
    line = sweep.runs[3].command
    assert line[0] == sys.executable
    assert line[-4:] == ['train_cfg.max_epochs=1', 'optim_wrapper.optimizer.lr=0.001', 'model.backbone.drop_rate=0.1',
                         'randomness.seed=1']
    assert '--resume' in line


def test_a_failing_run_does_not_stop_the_others_and_only_it_runs_again(sweep, capsys):
    failed = run_here(sweep.runs)
    assert sorted(failed) == [run.folder for run in sweep.runs[4:]]
    assert set(failed.values()) == {'exit status 1: this rate does not do'}
    metric, rows, _ = collect(sweep)
    assert metric == 'accuracy/top1'
    assert [row.scores for row in rows] == [{0: 50., 1: 51.}, {0: 51., 1: 52.}, {}, {}]
    assert '| 50.5 | 0.71 (2) |' in as_markdown(metric, rows)
    assert '| 0.002 | 0.1 | no score |' in as_markdown(metric, rows)

    (sweep.folder / 'mended').touch()
    assert run_here(sweep.runs) == {}
    calls = [(run.folder / 'calls').read_text().count('\n') for run in sweep.runs]
    assert calls == [1, 1, 1, 1, 2, 2, 2, 2]
    assert capsys.readouterr().out.count('finished before') == 4


def test_configs_are_compared_and_trainings_run_at_the_same_time(tmp_path):
    """Each waits until the other has begun."""
    wait = """
for _ in range(400):
    if len([*folder.parent.glob('*/calls')]) == 2:
        break
    time.sleep(0.05)
else:
    sys.exit('alone')
folder.joinpath('threads').write_text(os.environ['OMP_NUM_THREADS'])
score =""".replace('\n', '', 1)
    program = 'import os, time\n' + PROGRAM.replace('score =', wait, 1).replace(
        "options['optim_wrapper.optimizer.lr']", "'1'").replace("options['model.backbone.drop_rate']",
                                                                "len(arguments[0])")
    hybrid = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
    sweep = make_sweep(tmp_path, program, (DIGITS, hybrid))
    sweep.check()
    assert run_here(sweep.runs, 2) == {}
    metric, rows, _ = collect(sweep)
    assert as_markdown(metric, rows).splitlines()[0].startswith('| config | accuracy/top1 |')
    assert [row.scores for row in rows] == [{0: 50 + 10 * len(config)} for config in (DIGITS, hybrid)]
    assert sweep.runs[1].folder.name == '001_hybrid-vit-mini-p2_1xb16_digits_seed0'
    assert write_results(sweep, metric, rows, {})[1].read_text().count('hybrid-vit-mini-p2_1xb16_digits') == 1


@pytest.mark.parametrize('other', [DIGITS, f'./{DIGITS}', 'elsewhere/vit-mini-p2_1xb16_digits.py'])
def test_configs_of_one_name_are_refused(tmp_path, other):
    with pytest.raises(ConfigError, match="Two of the configs are named 'vit-mini-p2_1xb16_digits'"):
        make_sweep(tmp_path, configs=(DIGITS, other)).check()


def test_a_run_that_is_killed_is_said_to_be(tmp_path):
    sweep = make_sweep(tmp_path, "import os, signal; print('well'); os.kill(os.getpid(), signal.SIGKILL)")
    failed = run_here(sweep.runs)
    assert [*failed.values()] == ['ended by SIGKILL']


ENDLESS = '''
import signal, sys, time
from pathlib import Path
folder = Path(sys.argv[sys.argv.index('--work-dir') + 1])
def save(number, frame):
    time.sleep(0.3)
    folder.joinpath('saved').touch()
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, save)
folder.joinpath('runs').touch()
time.sleep(60)
'''


def test_the_end_of_a_sweep_is_the_end_of_its_training(tmp_path):
    sweep = make_sweep(tmp_path, ENDLESS)
    folder = sweep.runs[0].folder
    handler = signal.getsignal(signal.SIGTERM)

    def end_when_it_runs():
        deadline = time.monotonic() + 20
        while not (folder / 'runs').exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    ending = threading.Thread(target=end_when_it_runs)
    ending.start()
    with pytest.raises(SystemExit) as end:
        run_here(sweep.runs)
    ending.join()
    assert end.value.code == 128 + signal.SIGTERM
    assert (folder / 'saved').exists()  # it was waited for
    assert not (folder / 'finished').exists()
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.nightly
def test_jobs_that_fail_are_named(sweep):
    pytest.importorskip('submitit', reason='submitit is not installed')
    (sweep.folder / 'slurm').mkdir(parents=True)
    runs = [sweep.runs[0], sweep.runs[4]]
    failed = run_on_slurm(runs, 'low', sweep.folder / 'slurm', {}, cluster='local')
    assert failed == {runs[1].folder: 'exit status 1: this rate does not do'}
    assert (runs[0].folder / 'finished').exists()


def test_jobs_that_still_run_are_not_submitted_twice(sweep, monkeypatch, tmp_path):
    pytest.importorskip('submitit', reason='submitit is not installed')
    folder = sweep.folder / 'slurm'
    for name, lines in (('srun', ''), ('squeue', f'[ "$4" = "--name={folder}" ] && echo 7_0')):
        (tmp_path / name).write_text(f'#!/bin/sh\n{lines}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=':')
    with pytest.raises(ConfigError, match='still wait or run: 7_0; end them with scancel'):
        run_on_slurm(sweep.runs, 'low', folder, {})


def test_without_slurm_it_is_one_sentence(sweep, monkeypatch):
    pytest.importorskip('submitit', reason='submitit is not installed')
    monkeypatch.setenv('PATH', '')
    with pytest.raises(ConfigError, match='--slurm low: the jobs were not submitted'):
        run_on_slurm(sweep.runs, 'low', sweep.folder / 'slurm', {})


def test_results_as_json_markdown_and_picture(sweep):
    (sweep.folder).mkdir()
    (sweep.folder / 'mended').touch()
    run_here(sweep.runs)
    metric, rows, without = collect(sweep, best=True)
    assert not without
    paths = write_results(sweep, metric, rows, {})
    found = json.loads(paths[0].read_text())
    assert found['rows'][1]['scores'] == {'0': 52., '1': 53.}
    assert paths[1].read_text().splitlines()[3] == '| 0.001 | 0.1 | 52.5 | 0.71 (2) | 52 | 53 | 7 |'
    assert found['rows'][1]['curves'] == {'0': [[3., 42.], [7., 51.]], '1': [[3., 43.], [7., 52.]]}
    assert all(path.stat().st_size > 5000 for path in paths[2:])
    with pytest.raises(ConfigError, match='--metric top1: .* has recorded accuracy/top1'):
        collect(sweep, 'top1')
    record = sweep.runs[0].folder / 'metrics.json'
    record.write_text(json.dumps(dict(json.loads(record.read_text()), last={})))
    (sweep.runs[1].folder / 'metrics.json').unlink()
    _, rows, without = collect(sweep)
    assert [*without] == [run.folder for run in sweep.runs[:2]]
    assert [len(row.scores) for row in rows] == [0, 2, 2, 2]


def test_a_grid_of_lengths_is_drawn_over_them_a_line_for_each_other_setting(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(results, 'draw_budgets', lambda budgets, metric: drawn.append(budgets) or Figure())
    lr, length = 'optim_wrapper.optimizer.lr', 'train_cfg.max_epochs'
    sweep = make_sweep(tmp_path, grid={lr: [1e-3, 2e-3], length: [1, 2]})
    rows = [results.Row({lr: str(rate), length: str(epochs)}, {0: 50. + epochs}, {}, 7. * epochs)
            for rate in (1e-3, 2e-3) for epochs in (1, 2)]
    paths = write_results(sweep, 'accuracy/top1', rows, {})
    assert 'budgets.png' in [path.name for path in paths]
    assert drawn == [{f'lr {rate}': [(7., [51.]), (14., [52.])] for rate in (0.001, 0.002)}]
    sweep = make_sweep(tmp_path, grid={lr: [1e-3, 2e-3]})
    assert 'budgets.png' not in [path.name for path in write_results(sweep, 'accuracy/top1', rows[:1], {})]


def test_the_folder_of_another_sweep_is_refused(sweep):
    sweep.claim()
    sweep.claim()
    for change in (dict(seeds=3), dict(grid={'randomness.seed': [1]}), dict(configs=['other.py']), dict(options={})):
        with pytest.raises(ConfigError, match='folder of another sweep'):
            Sweep(**{**vars(sweep), **change}).claim()


@pytest.mark.parametrize(('key', 'values', 'words'), [
    ('model.backbone.drop_rat', [0], 'takes no drop_rat .* did you mean drop_rate'),
    ('randomness.seed', [5, 6], r'randomness.seed: each run of a sweep has its own seed; .* give --seeds\.$'),
    ('modell.backbone.drop_rate', [0], "a config has no setting 'modell'"),
    ('param_scheduler.7.begin', [0], 'param_scheduler is a list'),
    ('model.backbone.arch', ['B/17'], 'B/1'),
    ('train_cfg.max_epochs', [3, -1], 'max_epochs')])
@pytest.mark.filterwarnings('ignore')
def test_what_cannot_run_is_an_error_before_anything_runs(tmp_path, key, values, words):
    with pytest.raises(ConfigError, match=words):
        make_sweep(tmp_path, grid={key: values}).check()


def test_a_seed_for_all_runs_is_refused(tmp_path):
    with pytest.raises(ConfigError, match='randomness.seed: each run of a sweep has its own seed'):
        make_sweep(tmp_path, options={'randomness.seed': 7}).check()


@pytest.mark.filterwarnings('ignore')
def test_arguments_that_the_config_leaves_at_their_default_can_be_swept(tmp_path):
    make_sweep(tmp_path, grid={'model.backbone.drop_path_rate': [0.1], 'model.backbone.arch.num_layers': [2]}).check()


def test_values_are_read_back_as_they_were():
    from mmengine.config import DictAction
    for value in (1, 1e-3, True, None, 'B/16', (1, 2), [(1, 2), 'x'], [3]):
        assert DictAction._parse_iterable(as_text(value)) == value


@pytest.mark.parametrize('change', ['custom_hooks = []', 'val_dataloader = val_evaluator = val_cfg = None'])
def test_a_config_without_a_record_is_an_error(tmp_path, change):
    config = tmp_path / 'config.py'
    config.write_text(f'_base_ = {str(Path(DIGITS).resolve())!r}\n{change}')
    with pytest.raises(ConfigError, match='records no metrics to compare'):
        make_sweep(tmp_path, configs=(str(config), )).check()
