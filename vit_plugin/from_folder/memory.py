"""Estimate a training's memory on this machine, by the same trackers as ``vit-plugin plan``."""

import copy
import logging
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from mmengine.runner import Runner

from vit_plugin.errors import ConfigError
from vit_plugin.measure.planning.cost import GIB
from vit_plugin.measure.planning.tracing import memory_tracker

from .sample_batches import first_batch, first_scaled_batch

TRACED_IMAGES = 2  # images in the traced step; BatchNorm on small maps rejects a single one
# Process memory per byte of traced activations: buffers of libraries and fragmentation come on top.
# Measured on a CPU (docs/benchmarks.md); on a GPU as in a plan.
OVERHEAD_FACTORS = dict(cpu=1.5, cuda=1.1)
MAX_TRACED_PIXELS = 448**2  # pixels of an image; the memory of larger images is extrapolated
ADAMW_STATES = 2  # AdamW's values per parameter; Muon keeps fewer


class TrainingMemory:
    """The memory of a training with AdamW, in bytes, traced on one training step.

    Args:
        model: the model; the step runs on a copy.
        compute_gradients: runs the forward and backward pass of a model with a batch.
        batch: a batch, as ``compute_gradients`` takes it.
        images: the number of images in the batch.

    Attributes:
        held_bytes: memory of the process before the first step.
        gradient_and_state_bytes: memory of gradients and optimizer state.
        per_image: bytes of activations that each image of a step adds.
    """

    def __init__(
        self,
        model: Any,
        compute_gradients: Callable[[Any, Any], None],
        batch: Any,
        images: int,
    ) -> None:
        self.device = next(model.parameters()).device
        self.held_bytes = memory_in_use(self.device)
        traced = copy.deepcopy(model).train()
        tracker = memory_tracker(traced)
        with tracker:
            compute_gradients(traced, batch)
        activations = max(peak['activations'] for peak in tracker.peaks.values())
        self.per_image = activations / images
        trained = sum(param.nbytes for param in model.parameters() if param.requires_grad)
        self.gradient_and_state_bytes = (1 + ADAMW_STATES) * trained

    def log(self, logger: logging.Logger, batch_size: int, takes_img_size: bool = True) -> None:
        """Log the peak with this many images in a step, if the memory of the device is known.

        It warns if the peak exceeds the memory.

        Args:
            logger: the logger.
            batch_size: images in a step.
            takes_img_size: whether ``--img-size`` is a remedy.

        Raises:
            ConfigError: if the tensors alone exceed the memory of the machine or the GPU.
        """
        if not self.held_bytes or self.device.type not in OVERHEAD_FACTORS:
            return
        tensors, overhead = batch_size * self.per_image, OVERHEAD_FACTORS[self.device.type]
        peak = self.held_bytes + self.gradient_and_state_bytes + overhead * tensors
        free = free_memory(self.device)
        message = f'The training takes about {peak / GIB:.1f} GiB of memory'
        if free is not None:
            holder = 'machine' if self.device.type == 'cpu' else 'GPU'
            message += f', and the {holder} has {(self.held_bytes + free) / GIB:.1f}'
        if free is None or peak <= self.held_bytes + free:
            logger.info(f'{message}.')
            return
        fitting = int((free - self.gradient_and_state_bytes) / (overhead * self.per_image))
        size = f'--batch-size {fitting}' if fitting > 0 else 'a smaller --arch'
        smaller = 'a smaller --img-size, ' if takes_img_size else ''
        message += (
            f': give {size}, {smaller}or --cfg-options model.backbone.with_cp=True, '
            'which recomputes blocks instead of storing their activations.'
        )
        if self.gradient_and_state_bytes + tensors > free:
            raise ConfigError(message)
        logger.warning(message)


def estimate_memory(runner: Runner) -> TrainingMemory:
    """Trace the memory of a run's training step.

    Images of more than :data:`MAX_TRACED_PIXELS` pixels would take minutes. Their memory is
    extrapolated linearly from two smaller sizes.
    """
    loader: Any = runner.train_dataloader
    images = min(TRACED_IMAGES, loader.batch_size, len(loader.dataset))

    def measure(batch: Any) -> TrainingMemory:
        return TrainingMemory(runner.model, partial(compute_gradients, runner), batch, images)

    full_batch = first_batch(loader, images)
    pixels = pixels_per_image(runner, full_batch)
    scale = math.sqrt(MAX_TRACED_PIXELS / pixels)
    # A wrapper, such as ClassBalancedDataset, has no pipeline whose sizes could be scaled.
    if scale >= 1 or 'pipeline' not in runner.cfg.train_dataloader.dataset:
        return measure(full_batch)
    small_batch = first_scaled_batch(runner, loader, images, scale / 2)
    large_batch = first_scaled_batch(runner, loader, images, scale)
    small_pixels = pixels_per_image(runner, small_batch)
    large_pixels = pixels_per_image(runner, large_batch)
    if small_pixels == large_pixels:  # padded to one size
        return measure(full_batch)
    small, large = measure(small_batch), measure(large_batch)
    per_pixel = (large.per_image - small.per_image) / (large_pixels - small_pixels)
    large.per_image += (pixels - large_pixels) * per_pixel
    return large


def compute_gradients(runner: Runner, model: Any, batch: Any) -> None:
    """The forward and backward pass of a training step, without the optimizer."""
    optim_wrapper: Any = runner.optim_wrapper
    with optim_wrapper.optim_context(model):
        losses = model._run_forward(model.data_preprocessor(batch, training=True), mode='loss')
    model.parse_losses(losses)[0].backward()


def pixels_per_image(runner: Runner, batch: Any) -> int:
    """The pixels of an image in a batch at the model's input; 1 if it has several views."""
    preprocessor: Any = runner.model.data_preprocessor
    inputs = preprocessor(copy.deepcopy(batch), training=True)['inputs']
    return inputs.shape[-2:].numel() if isinstance(inputs, torch.Tensor) else 1


def memory_in_use(device: torch.device) -> int:
    """The bytes that this process holds on a GPU or on the machine; 0 if unknown."""
    if device.type == 'cuda':
        return torch.cuda.memory_allocated(device)
    return _read_sizes('/proc/self/status').get('VmRSS', 0)


def free_memory(device: torch.device) -> int | None:
    """The bytes that this process can still allocate, or None if unknown."""
    if device.type == 'cuda':
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    return _read_sizes('/proc/meminfo').get('MemAvailable')


def _read_sizes(path: str) -> dict[str, int]:
    """The sizes in a file of Linux's /proc, in bytes by name; empty on other systems."""
    if not Path(path).is_file():
        return {}
    rows = (line.partition(':') for line in Path(path).read_text().splitlines())
    return {name: int(size[:-2]) * 1024 for name, _, size in rows if size.endswith(' kB')}
