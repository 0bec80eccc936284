import logging
import re
import subprocess
from pathlib import Path

import pytest
from mmengine.logging import MMLogger, print_log

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine.console import (
    CHATTER,
    LoggedEvaluator,
    PerCentLogProcessor,
    printing_logged,
    without_stderr,
)
from vit_plugin.engine.loggers import FILE_ONLY, Without, print_safely, quieten
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
def test_messages_of_the_console(message, shown):
    record = logging.LogRecord('mmengine', logging.INFO, '', 0, message, (), None)
    assert Without(FILE_ONLY)(record) == shown


def test_files_get_everything_and_a_second_call_changes_nothing(tmp_path):
    logger = logging.getLogger(str(tmp_path))
    logger.addHandler(logging.StreamHandler())
    logger.addHandler(logging.FileHandler(tmp_path / 'log'))
    for _ in range(2):
        quieten(logger)
    assert [len(handler.filters) for handler in logger.handlers] == [1, 0]
    assert [type(one) for one in logger.filters] == [PrintableMessages]
    logger.handlers[1].close()


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('verbose', [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_run_tells_what_it_trains_in_few_lines(tmp_path, capsys, verbose):
    build(tiny_cfg(tmp_path, log_level='INFO', verbose=verbose)).train()
    shown, log = capsys.readouterr().out, next(tmp_path.rglob('*.log')).read_text()
    before = shown[: shown.index('Epoch(')].splitlines()
    assert (len(before) > 100) == verbose
    assert (len(before) <= 40) == (not verbose)
    for text in (shown, log):
        assert re.search(
            r'Model: +ImageClassifier with VisionTransformer, 0.02 M parameters\n', text
        )
        assert re.search(r'Data: +64 images of 10 classes, \d+ held out to validate\n', text)
        assert re.search(r'Run: +12 iterations in 3 epochs, 16 images in each\n', text)
        assert re.search(r'Device: +cpu, float32, 1 process\n', text)
    assert 'Hooks will be executed' in log
    assert Path(re.search(r'Log: +(.*)', shown)[1]).read_text() == log


def test_what_a_library_prints_is_logged_without_its_own_steps(capsys, caplog):
    logger = logging.getLogger('printing')
    logger.setLevel('INFO')
    with printing_logged(logger):
        print('\n'.join([f'{start} 1' for start in CHATTER] + [' Average Precision = 0.5']))
    with printing_logged(logger):
        print(CHATTER[0])
    assert [record.getMessage() for record in caplog.records] == ['\n Average Precision = 0.5']
    assert not capsys.readouterr().out


def test_an_error_begins_with_no_path_of_mmengines_logger(tmp_path):
    logger = MMLogger(f'paths in {tmp_path.name}', log_file=str(tmp_path / 'log'))
    print_safely(logger)
    print_log('Rank 1 of 2 gave no answer', logger, logging.ERROR)
    for handler in logger.handlers:
        handler.close()
    assert re.fullmatch(
        r'[\d/]+ [\d:]+ - .* - ERROR - Rank 1 of 2 gave no answer\n', (tmp_path / 'log').read_text()
    )


def test_the_evaluator_of_a_run_is_the_one_that_logs(tmp_path):
    runner = build(tiny_cfg(tmp_path))
    assert type(runner.build_evaluator(dict(type='Accuracy'))) is LoggedEvaluator


def test_what_a_shell_says_of_a_missing_compiler_is_dropped(capfd):
    with without_stderr():
        subprocess.run('no-such-compiler --version', shell=True, check=False)
    subprocess.run('echo heard >&2', shell=True, check=True)
    assert capfd.readouterr().err == 'heard\n'


@pytest.mark.parametrize(
    ('kind', 'given'), [({}, {}), ({'type': 'LogProcessor', '_scope_': 'mmdet'}, {'num_digits': 2})]
)
def test_a_runner_logs_scores_in_per_cent_and_losses_as_they_are(kind, given, tmp_path):
    runner = build(tiny_cfg(tmp_path, log_processor=dict(**kind, **given)))
    hub = runner.message_hub
    for name, value in {'val/coco/bbox_mAP': 0.277, 'val/time': 0.5, 'train/loss': 0.3}.items():
        hub.update_scalar(name, value)
    assert isinstance(runner.log_processor, PerCentLogProcessor)
    logged, text = runner.log_processor.get_log_after_epoch(runner, 0, 'val')
    assert logged['coco/bbox_mAP'] == 27.7
    assert 'coco/bbox_mAP: 27.70' in text
    assert runner.log_processor._collect_scalars([], runner, 'train') == {'loss': 0.3}
    assert hub.get_scalar('val/coco/bbox_mAP').current() == 0.277  # what hooks compare
