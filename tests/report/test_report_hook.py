"""The files that a run leaves in its work directory: records, tables and pictures."""

import csv
import json
import re
from pathlib import Path

import pytest
import torch
from ranks import on_ranks

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import Runner
from vit_plugin.errors import MissingExtraError
from vit_plugin.tasks.classification.class_outcomes import ClassOutcomes


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_a_resumed_run_continues_the_record(digits_config):
    cfg = digits_config
    folder = Path(cfg.work_dir)
    Runner.from_cfg(cfg).train()
    record = json.loads((folder / 'metrics.json').read_text())
    assert record['epochs'] == 3
    assert [epoch for epoch, _ in record['history']['accuracy/top1']] == [1, 2, 3]
    matrix = record['confusion_matrix']
    assert sum(map(sum, matrix)) == 30
    right = sum(matrix[i][i] for i in range(10))
    assert record['last']['accuracy/top1'] == pytest.approx(100 * right / 30)
    assert record['best']['accuracy/top1'] >= record['last']['accuracy/top1']
    for picture in ('learning_curve.png', 'confusion_matrix.png'):
        assert (folder / picture).stat().st_size > 5000
    rows = list(csv.DictReader((folder / 'results.csv').read_text().splitlines()))
    assert [(row['epoch'], row['iter']) for row in rows] == [('1', '4'), ('2', '8'), ('3', '12')]
    assert [float(row['accuracy/top1']) for row in rows] == [
        value for _, value in record['history']['accuracy/top1']
    ]
    assert all(float(row['train/loss']) > 0 and float(row['train/lr']) > 0 for row in rows)
    assert json.loads((folder / 'classes.json').read_text()) == record['scores']
    assert (folder / 'classes.csv').read_text().startswith('name,precision,recall,f1,samples\n0,')
    assert (folder / 'classes.md').is_file()

    cfg.merge_from_dict({'train_cfg.max_epochs': 4, 'resume': True, 'experiment_name': 'resumed'})
    Runner.from_cfg(cfg).train()
    resumed = json.loads((folder / 'metrics.json').read_text())
    assert resumed['history']['accuracy/top1'][:3] == record['history']['accuracy/top1']
    assert [epoch for epoch, _ in resumed['history']['accuracy/top1']] == [1, 2, 3, 4]
    assert resumed['seconds'] > record['clock'][1][1]
    assert [step for step, _ in resumed['clock']] == [
        step for step, _ in resumed['history']['accuracy/top1']
    ]
    # The checkpoint was saved before the third validation.
    assert resumed['clock'][:2] == record['clock'][:2]

    cfg.experiment_name = 'finished'
    Runner.from_cfg(cfg).train()  # the training is already complete
    finished = json.loads((folder / 'metrics.json').read_text())
    assert all(
        finished[name] == resumed[name]
        for name in ('history', 'confusion_matrix', 'epochs', 'iterations')
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_a_run_by_iterations_is_recorded(digits_config):
    cfg = digits_config
    cfg.train_dataloader.sampler.type = 'InfiniteSampler'
    cfg.param_scheduler = None
    cfg.train_cfg = dict(by_epoch=False, max_iters=6, val_interval=2)
    cfg.log_processor = dict(by_epoch=False)
    cfg.default_hooks.checkpoint.by_epoch = False
    Runner.from_cfg(cfg).train()
    record = json.loads(Path(cfg.work_dir, 'metrics.json').read_text())
    assert [step for step, _ in record['history']['accuracy/top1']] == [2, 4, 6]


def tiny_run(work_dir, pictures=True, **options):
    """A runner of one epoch with the hook; ``options`` change its config."""
    hooks = [dict(type='vit_plugin.ReportHook', pictures=pictures)]
    return build(
        tiny_cfg(
            work_dir,
            **{'custom_hooks': hooks, 'train_cfg.max_epochs': 1, 'log_level': 'INFO', **options},
        )
    )


def test_each_epoch_has_a_row_also_without_validation(tmp_path):
    options = {'train_cfg.max_epochs': 3, 'train_cfg.val_interval': 2}
    tiny_run(tmp_path, pictures=False, **options).train()
    rows = list(csv.DictReader((tmp_path / 'results.csv').read_text().splitlines()))
    assert [row['epoch'] for row in rows] == ['1', '2', '3']
    assert [bool(row['accuracy/top1']) for row in rows] == [False, True, True]
    assert all(float(row['train/loss']) > 0 for row in rows)
    record = json.loads((tmp_path / 'metrics.json').read_text())
    assert [epoch for epoch, _ in record['clock']] == [2, 3]


def test_a_run_without_validation_records_losses_and_prints_the_next_command(tmp_path):
    no_validation = dict.fromkeys(('val_cfg', 'val_dataloader', 'val_evaluator'))
    tiny_run(tmp_path, pictures=False, **no_validation).train()
    assert (tmp_path / 'results.csv').read_text().startswith('epoch,iter,seconds,train/lr,')
    assert (tmp_path / 'learning_curve.png').is_file()
    assert f'Next: vit-plugin test {tmp_path}' in next(tmp_path.rglob('*.log')).read_text()


@pytest.fixture
def few_images(monkeypatch):
    """Reduce the number of images in a figure, since drawing takes long."""
    monkeypatch.setattr('vit_plugin.report.pictures.data_pictures.SHOWN_SAMPLES', 4)
    monkeypatch.setattr('vit_plugin.report.outcomes.outcomes.PANELS', 4)


def documented_files() -> set[str]:
    """The patterns in the first column of the table in docs/tools.md."""
    text = Path('docs/tools.md').read_text().partition('## Logs')[2].partition('\n### ')[0]
    cells = [line.split('|')[1] for line in text.splitlines() if line.startswith('| `')]
    names = [re.findall('`([^`]+)`', cell) for cell in cells]
    # `classes.json`, `.csv` stands for classes.json and classes.csv.
    return {
        name if not name.startswith('.') else Path(first).stem + name
        for first, *others in names
        for name in (first, *others)
    }


@pytest.mark.nightly
@pytest.mark.usefixtures('few_images')
def test_docs_list_the_files_of_a_run(tmp_path):
    tiny_run(tmp_path, **{'default_hooks.checkpoint.save_best': 'auto'}).train()
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*') if path.is_file()}
    time = next(tmp_path.rglob('*.log')).stem
    patterns = {
        name.replace('<time>', time).replace('<config>', time) for name in documented_files()
    }
    assert {name for name in written if not any(map(Path(name).match, patterns))} == set()
    missing = {name for name in patterns if not any(Path(path).match(name) for path in written)}
    assert missing == {'precision_recall.png'}  # only detectors have it


@pytest.mark.nightly
@pytest.mark.usefixtures('few_images')
def test_pictures_do_not_change_the_training(tmp_path):
    weights = []
    for pictures in (True, False):
        model = tiny_run(tmp_path / f'{pictures}', pictures).train()
        weights.append(list(model.state_dict().values()))
        for picture in ('labels', 'train_batch', 'val_predictions', 'val_worst', 'val_best'):
            assert (tmp_path / f'{pictures}/{picture}.png').exists() == pictures
    assert all(map(torch.equal, *weights))


def test_failing_pictures_do_not_end_the_training(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError('by nought')

    def lack(*_):
        raise MissingExtraError('Drawing needs supervision.')

    monkeypatch.setattr(ClassOutcomes, 'add', fail)
    monkeypatch.setattr('vit_plugin.report.report_hook.data_figures', lack)
    tiny_run(tmp_path).train()
    text = next(tmp_path.rglob('*.log')).read_text()
    assert 'INFO - Drawing needs supervision. The run goes on without images to train on.' in text
    assert (
        text.count('The report lacks what the validation found: ZeroDivisionError: by nought.') == 1
    )
    record = json.loads((tmp_path / 'metrics.json').read_text())
    assert record['scores'] is None
    assert 'accuracy/top1' in record['last']


def train_on_rank(folder):
    tiny_run(
        folder, **{'val_dataloader.dataset.indices': 13, 'val_dataloader.batch_size': 4}
    ).train()


@pytest.mark.nightly
@pytest.mark.usefixtures('few_images')
def test_processes_report_each_image_once(tmp_path):
    """Two processes validate 7 images each of 13, so one image comes twice."""
    on_ranks(2, tmp_path, train_on_rank, tmp_path / 'work')
    record = json.loads((tmp_path / 'work/metrics.json').read_text())
    assert sum(map(sum, record['confusion_matrix'])) == 13
    right = sum(record['confusion_matrix'][i][i] for i in range(10))
    assert record['last']['accuracy/top1'] == pytest.approx(100 * right / 13)
    assert {'labels.png', 'train_batch.png', 'val_worst.png', 'results.csv', 'classes.md'} <= {
        path.name for path in (tmp_path / 'work').iterdir()
    }
