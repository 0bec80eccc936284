"""Unreadable files are counted in training, and left out of validations and tests."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mmengine.dataset import InfiniteSampler
from mmengine.evaluator import BaseMetric
from PIL import Image
from rejection import rejects
from torch.utils.data import BatchSampler, DataLoader

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.data.positioned import PositionedBatchSampler, PositionedSampler
from vit_plugin.data.unreadable import LISTS, UnreadableFile, UnreadableList
from vit_plugin.engine import UnreadableHook


class Log(list):
    """A logger that keeps its warnings."""

    def warning(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def runner(tmp_path) -> SimpleNamespace:
    """What the hook needs of a runner; batches have 4 samples. The hook checks every 50 batches."""
    data = range(100)
    loader = DataLoader(
        data, batch_size=4, sampler=PositionedSampler(InfiniteSampler(data, seed=0), 4, True)
    )
    return SimpleNamespace(
        work_dir=str(tmp_path), iter=0, max_iters=1000, train_dataloader=loader, logger=Log()
    )


def advance(hook: UnreadableHook, runner: SimpleNamespace, iterations: int) -> None:
    """Call the hook after each of some iterations."""
    for _ in range(iterations):
        hook.after_train_iter(runner, 0)
        runner.iter += 1


def test_too_many_unreadable_files_end_the_run(runner, tmp_path):
    hook, bad = UnreadableHook(max_share=0.01), UnreadableList(tmp_path / LISTS['train'])
    bad.add(UnreadableFile(0, 'old.jpg', 'of an earlier run'))
    hook.before_train(runner)
    for position in range(10):
        bad.add(UnreadableFile(position, f'{position}.jpg', 'empty'))
    bad.add(UnreadableFile(300, '300.jpg', 'a worker is ahead'))
    advance(hook, runner, 60)
    assert sorted(runner.logger) == [
        f'{i}.jpg cannot be read (empty): another sample takes its place.' for i in range(10)
    ]
    # After 100 iterations of 4 samples, position 300 counts too.
    with rejects(
        '11 of 400 training samples could not be read, which is more than '
        'unreadable.max_share=0.01; they are listed in .*unreadable.txt'
    ):
        advance(hook, runner, 60)


def test_an_endless_sampler_without_a_whole_batch_in_a_pass_is_counted(runner):
    batches = BatchSampler(InfiniteSampler(range(3), seed=0), 4, drop_last=True)
    runner.train_dataloader = DataLoader(
        range(3), batch_sampler=PositionedBatchSampler(batches, 4, True)
    )
    hook = UnreadableHook()
    hook.before_train(runner)
    assert hook._global_batch == 4


def test_share_is_of_all_samples_of_the_run_so_far(runner, tmp_path):
    hook, bad = UnreadableHook(max_share=0.01), UnreadableList(tmp_path / LISTS['train'])
    hook.before_train(runner)
    for position in range(1400, 1430):
        bad.add(UnreadableFile(position, 'bad.jpg', 'empty'))
    runner.iter = 749
    advance(hook, runner, 1)  # 30 of 3,000
    for position in (7, 8, 9):
        bad.add(UnreadableFile(position, 'bad.jpg', 'empty'))
    with rejects('33 of 3200'):
        advance(hook, runner, 50)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({'max_share': 2.0}, 'max_share=2.0 must be less than or equal to 1'),
        ({'max_shar': 1}, 'max_shar'),
    ],
)
def test_wrong_settings_raise(tmp_path, options, words):
    with rejects(words):
        build(tiny_cfg(tmp_path, unreadable=options))


class Count(BaseMetric):
    """Sums 2 to the power of each label, so that the sum tells which images were counted."""

    default_prefix = 'labels'

    def process(self, data_batch, data_samples) -> None:
        self.results += [2 ** int(sample['gt_label']) for sample in data_samples]

    def compute_metrics(self, results) -> dict[str, float]:
        return dict(sum=float(sum(results)), number=float(len(results)))


class Batches(Count):
    """A metric that keeps a result for each batch."""

    def process(self, data_batch, data_samples) -> None:
        self.results.append(len(data_samples))


@pytest.fixture
def images(tmp_path) -> dict:
    """A loader of 7 images with the labels 0 to 6; the third and the last file are damaged."""
    for i in range(7):
        Image.fromarray(np.full((8, 8), i, np.uint8)).save(tmp_path / f'{i}.png')
    for i in (2, 6):
        (tmp_path / f'{i}.png').write_text('no image')
    listing = tmp_path / 'list.txt'
    listing.write_text(''.join(f'{i}.png {i}\n' for i in range(7)))
    pipeline = [dict(type='vit_plugin.LoadImage', color_type='grayscale'), dict(type='PackInputs')]
    data = dict(
        type='CustomDataset',
        ann_file=str(listing),
        data_prefix=str(tmp_path),
        test_mode=True,
        pipeline=pipeline,
    )
    return dict(
        batch_size=2,
        num_workers=0,
        collate_fn=dict(type='default_collate'),
        dataset=data,
        sampler=dict(type='DefaultSampler', shuffle=False),
    )


def evaluate(folder, loader, metric=Count, **options) -> tuple:
    """Validate twice and test. Return the hook, and the metrics of the three."""
    cfg = tiny_cfg(folder / 'run', test_cfg=dict(), custom_hooks=[], **options)
    cfg.default_hooks.checkpoint.save_best = None
    cfg.val_dataloader = cfg.test_dataloader = loader
    cfg.val_evaluator = cfg.test_evaluator = dict(type='Accuracy')
    runner = build(cfg)
    for loop in (runner.val_loop, runner.test_loop):
        loop.evaluator.metrics[:] = [metric()]
    return runner.unreadable, runner.val(), runner.val(), runner.test()


@pytest.mark.filterwarnings('ignore')
def test_unreadable_files_are_left_out_of_validations_and_tests(images, tmp_path):
    hook, *scores = evaluate(tmp_path, images)
    # The images with the labels 0, 1, 3, 4 and 5.
    assert [metrics['labels/sum'] for metrics in scores] == [1 + 2 + 8 + 16 + 32] * 3
    assert [metrics['labels/number'] for metrics in scores] == [5] * 3
    assert hook.left_out == {2, 6}
    for split in ('val', 'test'):
        names = [
            Path(entry.path).name
            for entry in UnreadableList(tmp_path / 'run' / LISTS[split]).read()
        ]
        assert names == ['2.png', '6.png']


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('metric', 'options', 'words'),
    [
        (Batches, {}, 'Batches does not keep a result for each image'),
        (Count, dict(unreadable=dict(max_share=0)), "2.png' cannot be read as an image"),
    ],
)
def test_files_that_cannot_be_left_out_raise(images, tmp_path, metric, options, words):
    with rejects(words):
        evaluate(tmp_path, images, metric, **options)
