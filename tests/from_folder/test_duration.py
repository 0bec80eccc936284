"""The forecast of a training's time."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from image_folders import write_digits
from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.optim import OptimWrapper
from mmengine.runner import EpochBasedTrainLoop
from torch.utils.data import DataLoader

from vit_plugin.commands.command_line import build_runner
from vit_plugin.config import read_config
from vit_plugin.from_folder import duration
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config


def runner_of(epochs: int, img_size: object = 224, **loop) -> SimpleNamespace:
    """What the forecast needs of a runner, which validates every three epochs."""
    train_loop = EpochBasedTrainLoop.__new__(EpochBasedTrainLoop)
    train_loop._max_epochs, train_loop._epoch = epochs, loop.get('epoch', 0)
    train_loop.val_interval = 3
    cfg = Config(dict(model=dict(backbone=dict(img_size=img_size))))
    return SimpleNamespace(train_loop=train_loop, max_epochs=epochs, cfg=cfg)


@pytest.mark.parametrize(
    ('seconds', 'words'),
    [
        (0.1, '2 seconds'),
        (40, '40 seconds'),
        (150, '2.5 minutes'),
        (721, '12 minutes'),
        (3700, '62 minutes'),
        (12600, '3.5 hours'),
    ],
)
def test_times_are_written_in_words(seconds, words):
    assert duration.time_in_words(seconds) == words


def test_training_within_an_hour_has_no_proposal():
    assert (
        duration.describe_duration(runner_of(10), 600.0)
        == 'The training takes about 10 minutes on this machine.'
    )


@pytest.mark.parametrize(
    ('img_size', 'proposed'),
    [
        # The run takes four hours, so that a quarter of the pixels takes one.
        ((480, 640), 'smaller images by --img-size 320 or fewer epochs by --epochs 10'),
        (64, 'fewer epochs by --epochs 10'),  # smaller images would be too small
    ],
)
def test_longer_training_proposes_flags_for_an_hour(img_size, proposed):
    text = duration.describe_duration(runner_of(40, img_size), 4 * 3600.0)
    duration_text = 'The training takes about 4.0 hours on this machine. About an hour:'
    assert text == f'{duration_text} {proposed}.'


def test_no_number_of_epochs_is_proposed_that_takes_longer_than_an_hour():
    text = duration.describe_duration(runner_of(2, 64), 4 * 3600.0)
    assert text == 'The training takes about 4.0 hours on this machine.'


def test_no_flags_are_proposed_that_a_run_does_not_take():
    resumed = runner_of(40, 640, epoch=30)
    text = duration.describe_duration(resumed, 4 * 3600.0)
    assert text == 'The training takes about 4.0 hours on this machine.'
    complete = runner_of(40, 640)
    complete.cfg.load_from = 'segmentor.pth'
    complete.cfg.model.decode_head = dict(num_classes=2)
    text = duration.describe_duration(complete, 4 * 3600.0)
    assert text.endswith('About an hour: fewer epochs by --epochs 10.')
    complete.cfg.model.type = 'DepthEstimator'
    assert '--img-size 320' in duration.describe_duration(complete, 4 * 3600.0)


def test_time_of_a_batch_follows_from_smaller_batches(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(duration.time, 'perf_counter', lambda: next(clock))
    monkeypatch.setattr(duration, 'cores', lambda: 2)
    sizes, loader = [], DataLoader(range(100), batch_size=16, collate_fn=list)
    model, use = torch.nn.Linear(1, 1), lambda batch: sizes.append(len(batch))
    seconds = duration.time_batches(10, loader, use, model)
    assert sizes == [2, 2]  # a second for two images is long enough
    assert seconds == 10 * (1 + 1 / 2) * 16 / 2
    sizes.clear()
    monkeypatch.setattr(duration, 'ENOUGH_SECONDS', 10)
    assert duration.time_batches(10, loader, use, model) == 15
    assert sizes == [2, 2, 4, 4, 8, 8, 16, 16]
    sizes.clear()
    monkeypatch.setattr(duration, 'LONG_SECONDS', 1)
    assert duration.time_batches(10, loader, use, model) == 15
    assert sizes == [2, 4, 8, 16]  # a step of LONG_SECONDS is not repeated


def test_more_steps_are_timed_for_a_long_training(monkeypatch):
    """The speed of a machine varies, so one fast step would promise too short a training."""
    steps = iter([1, 1, 1, 1, 4, 1])
    monkeypatch.setattr(duration, 'time_use', lambda use, batch, model: next(steps))
    monkeypatch.setattr(duration, 'time_call', lambda read, *call: (read(*call), 0.0))
    loader = DataLoader(range(4), batch_size=2, collate_fn=list)
    seconds = duration.time_batches(1000, loader, print, torch.nn.Linear(1, 1))
    assert seconds == 1000 * (1 + 1 + 1 + 4) / 4
    assert next(steps) == 1


def test_forecast_adds_steps_validations_saves_and_epochs(monkeypatch):
    """Each part is counted as often as the run has it, and the run's own parameters stay."""
    # Seconds of a step and of a validation's batch, which are timed in this order.
    batch_seconds, models = iter((0.5, 0.25)), []

    def time_batches(batches, loader, use, model):
        models.append(model)
        return batches * next(batch_seconds)

    monkeypatch.setattr(duration, 'time_batches', time_batches)
    monkeypatch.setattr(duration, 'time_call', lambda *call: (None, 2.0))
    model = torch.nn.Linear(1, 1)
    model.train_step = model.val_step = print
    runner = runner_of(epochs=9)
    runner.__dict__.update(
        model=model,
        optim_wrapper=OptimWrapper(torch.optim.SGD(model.parameters(), 0.1)),
        max_iters=90,
        iter=0,
        epoch=0,
        train_dataloader=None,
        val_dataloader=range(4),
        _val_loop=object(),
        val_loop=object(),
        hooks=[CheckpointHook(interval=4), CheckpointHook(interval=50, by_epoch=False)],
    )
    ends = 9 * duration.EPOCH_SECONDS + duration.END_SECONDS
    saves = (2 + 1) + (1 + 1)  # of each hook: at its intervals, and at the end
    expected = 90 * 0.5 + 3 * 4 * 0.25 + saves * 2.0 + ends
    assert duration.forecast(runner) == pytest.approx(expected)
    assert all(timed_model is not model for timed_model in models)


@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize(
    'settings', [{}, dict(save_begin=3), dict(save_last=False), dict(interval=-1)]
)
def test_counted_saves_are_those_of_mmengine(monkeypatch, settings, by_epoch):
    saved: list[int] = []
    monkeypatch.setattr(CheckpointHook, '_save_checkpoint', lambda hook, runner: saved.append(1))
    monkeypatch.setattr(CheckpointHook, '_save_checkpoint_with_step', lambda *args: None)
    hook = CheckpointHook(**dict(interval=4, by_epoch=by_epoch) | settings)
    for last in (1, 8, 9):
        for done in range(last + 1):
            saved.clear()
            runner = SimpleNamespace(hooks=[hook], logger=logging.getLogger())
            runner.max_epochs = runner.max_iters = last
            runner.epoch = runner.iter = done
            counted = duration.count_saves(runner)
            for runner.epoch in range(done, last):
                runner.iter = runner.epoch
                hook.after_train_epoch(runner)
                hook.after_train_iter(runner, 0)
            assert counted == len(saved), (last, done)


def test_repeated_steps_use_other_batches(monkeypatch):
    """Libraries cache what they prepare for a shape, so the same batch would be too fast again."""
    drawn = iter(range(100))
    monkeypatch.setattr(duration, 'first_batch', lambda loader, images: [next(drawn)])
    monkeypatch.setattr(duration, 'ENOUGH_SECONDS', 0.0)
    used: list[int] = []
    loader = DataLoader(range(100), batch_size=16)
    duration.time_batches(1, loader, lambda batch: used.extend(batch), torch.nn.Linear(1, 1))
    assert used == [0, 1]


@pytest.mark.nightly
def test_forecast_does_not_change_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / 'digits', per_class=10)
    path = write_config(
        Request('digits', arch='timm://test_vit', epochs=1, batch_size=8, img_size=32)
    )
    messages, states = [], []
    for name, hooks in (('with', [duration.DurationHook()]), ('without', [])):
        cfg = read_config(
            path, dict(work_dir=name, custom_hooks=[], launcher='none', randomness=dict(seed=1))
        )
        for loader in (cfg.train_dataloader, cfg.val_dataloader):
            loader.update(num_workers=0)
        runner = build_runner(cfg)
        runner.logger.info = messages.append
        for hook in hooks:
            runner.register_hook(hook)
        states.append(runner.train().state_dict())
    assert sum(str(line).endswith('on this machine.') for line in messages) == 1
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_preserved_rng_restores_the_generators():
    np.random.seed(0)
    torch.manual_seed(0)
    with duration.preserved_rng():
        expected = np.random.rand(), torch.rand(1)
    assert (np.random.rand(), torch.rand(1)) == expected
