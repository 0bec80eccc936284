"""Counting what cannot be read, over a run."""

from types import SimpleNamespace

import pytest
from campaigns.tiny_run import build, tiny_cfg
from mmengine.dataset import InfiniteSampler
from torch.utils.data import DataLoader

from vit_plugin.data.seeded import PositionedSampler
from vit_plugin.data.unreadable import LIST, UnreadableFile, UnreadableList
from vit_plugin.engine import UnreadableHook
from vit_plugin.errors import ConfigError


class Log(list):
    """A logger that keeps its warnings."""

    def warning(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def runner(tmp_path) -> SimpleNamespace:
    """A run in batches of 4."""
    data = range(100)
    loader = DataLoader(data, batch_size=4, sampler=PositionedSampler(InfiniteSampler(data, seed=0), 4, True))
    return SimpleNamespace(work_dir=str(tmp_path), iter=0, max_iters=1000, train_dataloader=loader, logger=Log())


def passes(hook: UnreadableHook, runner: SimpleNamespace, iterations: int) -> None:
    for _ in range(iterations):
        hook.after_train_iter(runner, 0)
        runner.iter += 1


def test_too_many_end_the_run(runner, tmp_path):
    hook, bad = UnreadableHook(max_share=0.01), UnreadableList(tmp_path / LIST)
    bad.add(UnreadableFile(0, 'old.jpg', 'of an earlier run'))
    hook.before_train(runner)
    for position in range(10):
        bad.add(UnreadableFile(position, f'{position}.jpg', 'empty'))
    bad.add(UnreadableFile(300, '300.jpg', 'a worker is ahead'))
    passes(hook, runner, 60)
    assert sorted(runner.logger) == [
        f'{i}.jpg cannot be read (empty): another sample takes its place.' for i in range(10)]
    with pytest.raises(ConfigError, match='11 of 400 training samples could not be read, which is more than '
                                          'unreadable.max_share=0.01; they are listed in .*unreadable.txt'):
        passes(hook, runner, 60)


def test_a_share_of_what_was_seen(runner, tmp_path):
    hook, bad = UnreadableHook(max_share=0.01), UnreadableList(tmp_path / LIST)
    hook.before_train(runner)
    for position in range(1400, 1430):
        bad.add(UnreadableFile(position, 'bad.jpg', 'empty'))
    runner.iter = 749
    passes(hook, runner, 1)  # 30 of 3,000
    for position in (7, 8, 9):
        bad.add(UnreadableFile(position, 'bad.jpg', 'empty'))
    with pytest.raises(ConfigError, match='33 of 3200'):
        passes(hook, runner, 50)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('options', 'words'), [
    ({'max_share': 2.}, 'max_share=2.0 must be less than or equal to 1'), ({'max_shar': 1}, 'max_shar')])
def test_wrong_settings_are_one_sentence(tmp_path, options, words):
    runner = build(tiny_cfg(tmp_path, unreadable=options))
    with pytest.raises(ConfigError, match=words):
        runner.train()
