"""Memory of a training on this machine, by the same trackers as ``vit-plugin plan``."""

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vit_plugin.errors import ConfigError
from vit_plugin.measure.planning.cost import GIB
from vit_plugin.measure.planning.tracing import memory_tracker

TRACED_IMAGES = 2  # images in the traced step; BatchNorm on small maps rejects a single one
# Memory beyond the traced tensors: buffers of libraries, and fragmentation. Measured on a CPU
# (docs/benchmarks.md); on a GPU as in a plan.
OVERHEAD = dict(cpu=1.5, cuda=1.1)
ADAMW_STATES = 2  # AdamW's values per parameter; Muon keeps fewer


class TrainingMemory:
    """The memory of a training, in bytes.

    Args:
        model: the model.
        learn: runs a step of a model with a batch, up to the gradients.
        batch: some images.
        images: their number.

    Attributes:
        held: memory of the process before the first step.
        learned: memory of gradients and optimizer state.
        per_image: memory that each image of a step adds.
    """

    def __init__(
        self, model: Any, learn: Callable[[Any, Any], None], batch: Any, images: int
    ) -> None:
        self.device = next(model.parameters()).device
        self.held, traced = memory_in_use(self.device), copy.deepcopy(model).train()
        tracker = memory_tracker(traced)
        with tracker:
            learn(traced, batch)
        activations = max(held['activations'] for held in tracker.peaks.values())
        self.per_image = activations / images
        trained = sum(part.nbytes for part in model.parameters() if part.requires_grad)
        self.learned = (1 + ADAMW_STATES) * trained

    def log(self, logger: logging.Logger, batch_size: int) -> None:
        """Log the peak with this many images in a step, if the memory of the device is known.

        It warns if the peak exceeds the memory.

        Raises:
            ConfigError: if the tensors alone exceed the memory of the machine or the GPU.
        """
        if not self.held or self.device.type not in OVERHEAD:
            return
        tensors, overhead = batch_size * self.per_image, OVERHEAD[self.device.type]
        peak = self.held + self.learned + overhead * tensors
        free = free_memory(self.device)
        place = 'machine' if self.device.type == 'cpu' else 'GPU'
        has = '' if free is None else f', and the {place} has {(self.held + free) / GIB:.1f}'
        message = f'The training takes about {peak / GIB:.1f} GiB of memory{has}'
        if free is None or peak <= self.held + free:
            logger.info(f'{message}.')
            return
        fitting = int((free - self.learned) / (overhead * self.per_image))
        size = f'--batch-size {fitting}' if fitting > 0 else 'a smaller --arch'
        message += (
            f': give {size}, a smaller --img-size, or --cfg-options model.backbone.with_cp=True, '
            'which recomputes blocks instead of storing their activations.'
        )
        if self.learned + tensors > free:
            raise ConfigError(message)
        logger.warning(message)


def memory_in_use(device: torch.device) -> int:
    """The bytes that this process holds on a GPU, or on the machine if that is known."""
    if device.type == 'cuda':
        return torch.cuda.memory_allocated(device)
    return _sizes('/proc/self/status').get('VmRSS', 0)


def free_memory(device: torch.device) -> int | None:
    """The bytes that this process can still allocate, or None if unknown."""
    if device.type == 'cuda':
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    return _sizes('/proc/meminfo').get('MemAvailable')


def _sizes(path: str) -> dict[str, int]:
    """The sizes in a file of Linux's /proc, in bytes by name; empty on other systems."""
    if not Path(path).is_file():
        return {}
    rows = (line.partition(':') for line in Path(path).read_text().splitlines())
    return {name: int(size[:-2]) * 1024 for name, _, size in rows if size.endswith(' kB')}
