"""The progress line of a run in a terminal, and plain lines in a pipe."""

import io
import re
import sys

import pytest

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import progress

pytestmark = pytest.mark.filterwarnings('ignore')
HOOKS = [
    dict(type='vit_plugin.ReportHook', pictures=False),
    dict(type='vit_plugin.ProgressHook'),
]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown_by(work_dir, monkeypatch, stream: io.StringIO, **options) -> str:
    """What a stream shows after a run of 12 steps, without text that was overwritten."""
    monkeypatch.setattr(sys, 'stdout', stream)
    options = {'log_level': 'INFO', 'verbose': False, 'custom_hooks': HOOKS, **options}
    runner = build(tiny_cfg(work_dir, **options))
    handlers = list(runner.logger.handlers)
    runner.train()
    assert runner.logger.handlers == handlers
    return '\n'.join(line.rpartition('\r')[2] for line in stream.getvalue().split('\n'))


def test_terminal_shows_one_line_for_each_epoch(tmp_path, monkeypatch):
    shown = shown_by(tmp_path, monkeypatch, Terminal())
    lines = re.findall(r'Epoch (\d)/3 \S+ 100%, loss [\d.]+, top1 [\d.]+, .*images/s, lr', shown)
    assert lines == ['1', '2', '3']
    assert 'Epoch(' not in shown
    assert 'Saving checkpoint' not in shown
    assert ' - INFO - ' not in shown
    assert shown.index('Epoch 3/3') < shown.index('Trained in')
    assert re.search(r'accuracy/top1 +[\d.]+ +[\d.]+ +\d\n', shown)
    log = next(tmp_path.rglob('*.log')).read_text()
    assert log.count('Epoch(val)') == 3
    assert 'Saving checkpoint' in log


def test_narrow_terminal_shows_the_metric_without_a_bar(tmp_path, monkeypatch):
    monkeypatch.setenv('COLUMNS', '60')
    shown = shown_by(tmp_path, monkeypatch, Terminal(), **{'train_cfg.max_epochs': 1})
    line = next(line for line in shown.splitlines() if line.startswith('Epoch 1/1'))
    assert re.match(r'Epoch 1/1, loss [\d.]+, top1 [\d.]+', line)
    assert len(line) <= 60


@pytest.mark.nightly
def test_iteration_based_run_shows_one_line_for_each_validation(tmp_path, monkeypatch):
    settings = dict(by_epoch=False, max_iters=10, val_interval=4)
    shown = shown_by(
        tmp_path, monkeypatch, Terminal(), loop='iter', train_cfg=settings, param_scheduler=None
    )
    assert re.findall(r'Iteration (\d+)/10 \S+ 100%, .*top1', shown) == ['4', '8', '10']


@pytest.mark.nightly
def test_line_shows_the_metric_of_the_best_checkpoint(tmp_path, monkeypatch):
    options = {
        'val_evaluator': dict(type='Accuracy', topk=(1, 5)),
        'default_hooks.checkpoint.save_best': 'accuracy/top5',
        'default_hooks.checkpoint.rule': 'greater',
        'train_cfg.max_epochs': 1,
    }
    shown = shown_by(tmp_path, monkeypatch, Terminal(), **options)
    assert re.search(r'Epoch 1/1 \S+ 100%, loss [\d.]+, top5 [\d.]+,', shown)


@pytest.mark.parametrize(('seconds', 'lines'), [(1e9, 1), (0, 12)])
def test_pipe_gets_plain_lines_at_intervals(tmp_path, monkeypatch, seconds, lines):
    monkeypatch.setattr(progress, 'PIPE_INTERVAL', seconds)
    shown = shown_by(tmp_path, monkeypatch, stream := io.StringIO())
    assert '\r' not in stream.getvalue()
    steps = re.findall(r'Epoch (\d)/3, step (\d) of 4, loss [\d.]+, 0\d:\d\d left, .*, lr', shown)
    assert steps == [(str(i // 4 + 1), str(i % 4 + 1)) for i in range(12)][:lines]
    assert shown.count('Epoch(val)') == 3
    assert 'Epoch(train)' not in shown
    assert 'Epoch(train)' in next(tmp_path.rglob('*.log')).read_text()


@pytest.mark.nightly
def test_verbose_run_shows_all_messages(tmp_path, monkeypatch):
    shown = shown_by(tmp_path, monkeypatch, Terminal(), verbose=True)
    assert 'Epoch 3/3' in shown
    assert shown.count('Epoch(val)') == 3


def test_interrupted_run_restores_the_logger(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'stdout', stream := Terminal())
    runner = build(tiny_cfg(tmp_path, custom_hooks=HOOKS[1:]))
    handlers = list(runner.logger.handlers)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.model, 'train_step', interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.train()
    assert runner.logger.handlers == handlers
    assert stream.getvalue().endswith('\n')
