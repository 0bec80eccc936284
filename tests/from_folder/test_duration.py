"""The forecast of a training."""

import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from image_folders import write_digits
from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.optim import OptimWrapper
from mmengine.runner import EpochBasedTrainLoop
from rejection import rejects
from torch.utils.data import DataLoader

from vit_plugin.commands.command_line import build_runner
from vit_plugin.config import read_config
from vit_plugin.from_folder import duration, memory
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config


def runner_of(epochs: int, img_size: object = 224, **loop) -> SimpleNamespace:
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
def test_times_are_said_as_people_say_them(seconds, words):
    assert duration.time_in_words(seconds) == words


def test_within_an_hour_nothing_is_proposed():
    assert (
        duration.describe_duration(runner_of(10), 600.0)
        == 'The training takes about 10 minutes on this machine.'
    )


@pytest.mark.parametrize(
    ('img_size', 'proposed'),
    [
        # A quarter of the pixels.
        ((480, 640), 'smaller images by --img-size 320 or fewer epochs by --epochs 10'),
        (64, 'fewer epochs by --epochs 10'),  # smaller images would show nothing
    ],
)
def test_over_an_hour_flags_are_proposed_that_make_it_one(img_size, proposed):
    text = duration.describe_duration(runner_of(40, img_size), 4 * 3600.0)
    said = 'The training takes about 4.0 hours on this machine. About an hour:'
    assert text == f'{said} {proposed}.'


def test_a_batch_takes_as_long_as_its_images(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(duration.time, 'perf_counter', lambda: next(clock))
    monkeypatch.setattr(duration, 'cores', lambda: 2)
    used, loader = [], DataLoader(range(100), batch_size=16, collate_fn=list)
    model, use = torch.nn.Linear(1, 1), lambda batch: used.append(len(batch))
    seconds = duration.time_batches(10, loader, use, model)
    assert used == [2, 2]  # a second for two images is enough to know
    assert seconds == 10 * (1 + 1 / 2) * 16 / 2
    used.clear()
    monkeypatch.setattr(duration, 'ENOUGH_SECONDS', 10)
    assert duration.time_batches(10, loader, use, model) == 15
    assert used == [2, 2, 4, 4, 8, 8, 16, 16]
    used.clear()
    monkeypatch.setattr(duration, 'LONG_SECONDS', 1)
    assert duration.time_batches(10, loader, use, model) == 15
    assert used == [2, 4, 8, 16]  # a step that long is not repeated


def test_more_steps_are_timed_for_a_long_training(monkeypatch):
    """The speed of a machine varies, so one fast step would promise too short a training."""
    steps = iter([1, 1, 1, 1, 4, 1])
    monkeypatch.setattr(duration, 'time_use', lambda use, batch, model: next(steps))
    monkeypatch.setattr(duration, 'time_call', lambda read, *call: (read(*call), 0.0))
    loader = DataLoader(range(4), batch_size=2, collate_fn=list)
    seconds = duration.time_batches(1000, loader, print, torch.nn.Linear(1, 1))
    assert seconds == 1000 * (1 + 1 + 1 + 4) / 4
    assert next(steps) == 1


def test_a_run_takes_its_steps_validations_saves_and_epochs(monkeypatch):
    """Each part is counted as often as the run has it, and the run's own parameters stay."""
    each, models = iter((0.5, 0.25)), []

    def time_batches(batches, loader, use, model):
        models.append(model)
        return batches * next(each)

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
    expected = 90 * 0.5 + 3 * 4 * 0.25 + (2 + 1) * 2.0 + ends
    assert duration.forecast(runner) == pytest.approx(expected)
    assert all(used is not model for used in models)


def test_a_batch_of_another_shape_is_timed(monkeypatch):
    """Libraries keep what they prepared for a shape, so the same batch again would be too fast."""
    drawn = iter(range(100))
    monkeypatch.setattr(duration, 'first_batch', lambda loader, images: [next(drawn)])
    monkeypatch.setattr(duration, 'ENOUGH_SECONDS', 0.0)
    used: list[int] = []
    loader = DataLoader(range(100), batch_size=16)
    duration.time_batches(1, loader, lambda batch: used.extend(batch), torch.nn.Linear(1, 1))
    assert used == [0, 1]


SIZES = [dict(type='Resize', scale=(64, 64))]


def images_of(side: int) -> dict:
    return dict(inputs=torch.zeros(2, 3, side, side))


def step(model: torch.nn.Module, batch: torch.Tensor) -> None:
    model(batch).relu().sum().backward()


def test_the_memory_grows_with_the_batch(caplog, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256))
    needed = memory.TrainingMemory(model, step, torch.zeros(2, 512, 256), 2)
    parameters = 2 * 256 * 1024 + 1024 + 256
    assert needed.learned == 3 * 4 * parameters
    # The two maps of an image, and what the backward makes of them.
    assert 512 * 1280 * 4 <= needed.per_image <= 3 * 512 * 1280 * 4
    assert all(part.grad is None for part in model.parameters())
    logger = logging.getLogger('of memory')
    needed.held = memory.GIB
    monkeypatch.setattr(memory, 'free_memory', lambda device: None)
    with caplog.at_level(logging.INFO, 'of memory'):
        needed.log(logger, 2)
    assert caplog.messages == ['The training takes about 1.0 GiB of memory.']
    room = needed.learned + 5.5 * memory.OVERHEAD['cpu'] * needed.per_image
    monkeypatch.setattr(memory, 'free_memory', lambda device: room)
    needed.log(logger, 5)
    caplog.clear()
    needed.log(logger, 6)  # the tensors alone would fit
    advice = 'the machine has 1.1: give --batch-size 5, a smaller'
    assert advice in caplog.messages[0]
    with rejects(advice):
        needed.log(logger, 9)
    monkeypatch.setattr(memory, 'free_memory', lambda device: 1)
    with rejects('give a smaller --arch, a smaller --img-size'):
        needed.log(logger, 6)


@pytest.mark.parametrize('seen', [16, 64])
def test_the_memory_of_large_images_is_that_of_smaller_ones(seen, monkeypatch):
    """It is exact for a model whose tensors grow by the pixel, and leaves the data as they are."""
    monkeypatch.setattr(duration, 'SEEN', seen**2)

    class Images(list):
        pipeline = list(SIZES)

        def __getitem__(self, index):
            (step,) = self.pipeline
            return torch.zeros(3, *step['scale'])

    images = Images(range(4))
    loader = SimpleNamespace(
        dataset=images, batch_size=2, collate_fn=lambda batch: dict(inputs=torch.stack(batch))
    )
    used = []

    def compute_gradients(runner, model, batch):
        used.append(batch['inputs'].shape[-1])
        model(batch['inputs']).relu().mean().backward()

    monkeypatch.setattr(duration, 'compute_gradients', compute_gradients)
    data = dict(train_dataloader=dict(dataset=dict(pipeline=SIZES)))
    model = torch.nn.Conv2d(3, 256, 1)
    model.data_preprocessor = lambda batch, training: batch
    runner = SimpleNamespace(train_dataloader=loader, model=model, cfg=Config(data))
    found = duration.estimate_memory(runner).per_image
    assert used == ([8, 16] if seen < 64 else [64])
    assert images.pipeline == SIZES
    wanted = memory.TrainingMemory(
        runner.model, lambda *a: compute_gradients(runner, *a), images_of(64), 2
    ).per_image
    assert found == pytest.approx(wanted, rel=0.05)


def test_what_is_frozen_needs_no_gradient():
    layers = [torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)]
    model = torch.nn.Sequential(*layers)
    batch = torch.zeros(2, 512, 256)
    all_learn = memory.TrainingMemory(model, step, batch, 2)
    layers[0].requires_grad_(False)
    last_learns = memory.TrainingMemory(model, step, batch, 2)
    assert last_learns.learned == 3 * 4 * (1024 * 256 + 256)
    assert 0 < last_learns.per_image < all_learn.per_image


def test_linux_says_its_memory():
    if not Path('/proc/meminfo').is_file():
        pytest.skip('not on Linux')
    assert memory.memory_in_use(torch.device('cpu')) > 1 << 20
    assert memory.free_memory(torch.device('cpu')) > 1 << 20


@pytest.mark.nightly
def test_the_forecast_changes_nothing_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / 'digits', per_class=10)
    path = write_config(
        Request('digits', arch='timm://test_vit', epochs=1, batch_size=8, img_size=32)
    )
    said, states = [], []
    for name, hooks in (('with', [duration.DurationHook()]), ('without', [])):
        cfg = read_config(
            path, dict(work_dir=name, custom_hooks=[], launcher='none', randomness=dict(seed=1))
        )
        for loader in (cfg.train_dataloader, cfg.val_dataloader):
            loader.update(num_workers=0)
        runner = build_runner(cfg)
        runner.logger.info = said.append
        for hook in hooks:
            runner.register_hook(hook)
        states.append(runner.train().state_dict())
    assert sum(str(line).endswith('on this machine.') for line in said) == 1
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_the_generators_get_their_states_back():
    np.random.seed(0), torch.manual_seed(0)
    with duration.preserved_rng():
        expected = np.random.rand(), torch.rand(1)
    assert (np.random.rand(), torch.rand(1)) == expected
