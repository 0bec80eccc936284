"""What a run shows on the console, and what it logs."""

import logging
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.logging import MMLogger, print_log
from mmengine.runner import LogProcessor
from torch import nn

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine.console import (
    CHATTER,
    LoggedEvaluator,
    PerCentLogProcessor,
    redirect_prints_to,
    run_summary,
    without_stderr,
)
from vit_plugin.engine.loggers import FILE_ONLY, PrefixFilter, make_printable, quieten
from vit_plugin.files.untrusted_text import PrintableMessages


@pytest.mark.parametrize(
    ('message', 'shown'),
    [
        *((f'{start} and more', False) for start in FILE_ONLY),
        ('\n------\nSystem environment:\n  sys.platform: linux', False),
        ('Epoch(train) [1][50/90]  loss: 2.0', True),
        ('The Config: of somebody', True),
        ('', True),
    ],
)
def test_only_some_messages_reach_the_console(message, shown):
    record = logging.LogRecord('mmengine', logging.INFO, '', 0, message, (), None)
    assert PrefixFilter(FILE_ONLY)(record) == shown


def test_quieten_filters_only_the_console_and_once(tmp_path):
    logger = logging.getLogger(str(tmp_path))
    logger.addHandler(logging.StreamHandler())
    logger.addHandler(logging.FileHandler(tmp_path / 'log'))
    for _ in range(2):
        quieten(logger)
    assert [len(handler.filters) for handler in logger.handlers] == [1, 0]
    assert [type(log_filter) for log_filter in logger.filters] == [PrintableMessages]
    logger.handlers[1].close()


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('verbose', [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_run_describes_its_training_in_few_lines(tmp_path, capsys, verbose):
    build(tiny_cfg(tmp_path, log_level='INFO', verbose=verbose)).train()
    shown, log = capsys.readouterr().out, next(tmp_path.rglob('*.log')).read_text()
    before = shown[: shown.index('Epoch(')].splitlines()
    assert len(before) > 100 if verbose else len(before) <= 40
    for text in (shown, log):
        assert re.search(
            r'Model: +ImageClassifier with VisionTransformer, 0.02 M parameters\n', text
        )
        assert re.search(r'Data: +64 images of 10 classes, \d+ held out to validate\n', text)
        assert re.search(r'Run: +12 iterations in 3 epochs, 16 images in each\n', text)
        assert re.search(r'Device: +cpu, float32, 1 process\n', text)
    assert 'Hooks will be executed' in log
    assert Path(re.search(r'Log: +(.*)', shown)[1]).read_text() == log


def test_summary_counts_a_single_class_without_a_tuple():
    class Data(list):
        metainfo = dict(classes='car')

    runner = SimpleNamespace(
        model=nn.Linear(2, 2),
        train_dataloader=SimpleNamespace(dataset=Data([0, 1]), batch_size=1),
        train_loop=None,
        _val_loop=None,
        optim_wrapper=None,
        max_iters=2,
        logger=SimpleNamespace(handlers=[]),
    )
    assert '2 images of 1 class\n' in run_summary(runner)


def test_printed_results_are_logged_without_progress_messages(capsys, caplog):
    logger = logging.getLogger('printing')
    logger.setLevel('INFO')
    with redirect_prints_to(logger):
        print('\n'.join([f'{start} 1' for start in CHATTER] + [' Average Precision = 0.5']))
    with redirect_prints_to(logger):
        print(CHATTER[0])
    assert [record.getMessage() for record in caplog.records] == ['\n Average Precision = 0.5']
    assert not capsys.readouterr().out


def test_logged_errors_do_not_begin_with_a_path(tmp_path):
    logger = MMLogger(f'paths in {tmp_path.name}', log_file=str(tmp_path / 'log'))
    make_printable(logger)
    print_log('Rank 1 of 2 gave no answer', logger, logging.ERROR)
    for handler in logger.handlers:
        handler.close()
    assert re.fullmatch(
        r'[\d/]+ [\d:]+ - .* - ERROR - Rank 1 of 2 gave no answer\n', (tmp_path / 'log').read_text()
    )


def test_a_run_builds_the_logged_evaluator(tmp_path):
    runner = build(tiny_cfg(tmp_path))
    assert type(runner.build_evaluator(dict(type='Accuracy'))) is LoggedEvaluator


def test_stderr_of_child_processes_is_dropped(capfd):
    with without_stderr():
        subprocess.run('no-such-compiler --version', shell=True, check=False)
    subprocess.run('echo heard >&2', shell=True, check=True)
    assert capfd.readouterr().err == 'heard\n'


@pytest.mark.parametrize(
    'log_processor',
    [
        {},
        {'type': 'LogProcessor', '_scope_': 'mmdet', 'num_digits': 2},
        {'type': LogProcessor},  # as in the frameworks' new configs
        {'type': 'mmengine.LogProcessor'},
    ],
)
def test_a_run_logs_scores_in_per_cent(log_processor, tmp_path):
    runner = build(tiny_cfg(tmp_path, log_processor=log_processor))
    hub = runner.message_hub
    for name, value in {'val/coco/bbox_mAP': 0.277, 'val/time': 0.5, 'train/loss': 0.3}.items():
        hub.update_scalar(name, value)
    assert isinstance(runner.log_processor, PerCentLogProcessor)
    logged, text = runner.log_processor.get_log_after_epoch(runner, 0, 'val')
    assert logged['coco/bbox_mAP'] == 27.7
    assert 'coco/bbox_mAP: 27.70' in text
    assert runner.log_processor._collect_scalars([], runner, 'train') == {'loss': 0.3}
    assert hub.get_scalar('val/coco/bbox_mAP').current() == 0.277  # hooks compare this
