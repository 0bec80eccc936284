"""The estimate of a training's memory."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from vit_plugin.from_folder import memory

SIZES = [dict(type='Resize', scale=(64, 64))]


def images_of(side: int) -> dict:
    return dict(inputs=torch.zeros(2, 3, side, side))


def run_backward(model: torch.nn.Module, batch: torch.Tensor) -> None:
    model(batch).relu().sum().backward()


def test_memory_grows_with_the_batch(caplog, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256))
    needed = memory.TrainingMemory(model, run_backward, torch.zeros(2, 512, 256), 2)
    parameters = 2 * 256 * 1024 + 1024 + 256
    assert needed.gradient_and_state_bytes == 3 * 4 * parameters
    # The two maps of an image, and at most twice as much for the backward pass.
    assert 512 * 1280 * 4 <= needed.per_image <= 3 * 512 * 1280 * 4
    assert all(part.grad is None for part in model.parameters())
    logger = logging.getLogger('of memory')
    needed.held_bytes = memory.GIB
    monkeypatch.setattr(memory, 'free_memory', lambda device: None)
    with caplog.at_level(logging.INFO, 'of memory'):
        needed.log(logger, 2)
    assert caplog.messages == ['The training takes about 1.0 GiB of memory.']
    # Memory for 5 images and a half.
    room = needed.gradient_and_state_bytes + 5.5 * memory.OVERHEAD_FACTORS['cpu'] * needed.per_image
    monkeypatch.setattr(memory, 'free_memory', lambda device: room)
    needed.log(logger, 5)
    caplog.clear()
    needed.log(logger, 6)  # tensors would fit without overhead: a warning, not an error
    advice = 'the machine has 1.1: give --batch-size 5, a smaller'
    assert advice in caplog.messages[0]
    with rejects(advice):
        needed.log(logger, 9)
    monkeypatch.setattr(memory, 'free_memory', lambda device: 1)
    with rejects('give a smaller --arch, a smaller --img-size'):
        needed.log(logger, 6)
    with rejects('give a smaller --arch, or --cfg-options'):
        needed.log(logger, 6, takes_img_size=False)


@pytest.mark.parametrize('side', [16, 64])
def test_memory_of_large_images_is_extrapolated(side, monkeypatch):
    """Exactly, for a model whose tensors grow with the pixels. The data's pipeline is restored."""
    monkeypatch.setattr(memory, 'MAX_TRACED_PIXELS', side**2)

    class Images(list):
        pipeline = list(SIZES)

        def __getitem__(self, index):
            (step,) = self.pipeline
            return torch.zeros(3, *step['scale'])

    images = Images(range(4))
    loader = SimpleNamespace(
        dataset=images, batch_size=2, collate_fn=lambda batch: dict(inputs=torch.stack(batch))
    )
    sides = []

    def compute_gradients(runner, model, batch):
        sides.append(batch['inputs'].shape[-1])
        model(batch['inputs']).relu().mean().backward()

    monkeypatch.setattr(memory, 'compute_gradients', compute_gradients)
    data = dict(train_dataloader=dict(dataset=dict(pipeline=SIZES)))
    model = torch.nn.Conv2d(3, 256, 1)
    model.data_preprocessor = lambda batch, training: batch
    runner = SimpleNamespace(train_dataloader=loader, model=model, cfg=Config(data))
    estimate = memory.estimate_memory(runner).per_image
    assert sides == ([8, 16] if side < 64 else [64])
    assert images.pipeline == SIZES
    expected = memory.TrainingMemory(
        runner.model, lambda *a: compute_gradients(runner, *a), images_of(64), 2
    ).per_image
    assert estimate == pytest.approx(expected, rel=0.05)


def test_frozen_layers_need_less_memory():
    layers = [torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)]
    model = torch.nn.Sequential(*layers)
    batch = torch.zeros(2, 512, 256)
    all_trained = memory.TrainingMemory(model, run_backward, batch, 2)
    layers[0].requires_grad_(False)
    last_trained = memory.TrainingMemory(model, run_backward, batch, 2)
    assert last_trained.gradient_and_state_bytes == 3 * 4 * (1024 * 256 + 256)
    assert 0 < last_trained.per_image < all_trained.per_image


def test_memory_is_read_on_linux():
    if not Path('/proc/meminfo').is_file():
        pytest.skip('not on Linux')
    assert memory.memory_in_use(torch.device('cpu')) > 1 << 20
    assert memory.free_memory(torch.device('cpu')) > 1 << 20
