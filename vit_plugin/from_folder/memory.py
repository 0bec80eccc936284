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
        held_bytes: memory of the process before the first step.
        gradient_and_state_bytes: memory of gradients and optimizer state.
        per_image: memory that each image of a step adds.
    """

    def __init__(
        self, model: Any, learn: Callable[[Any, Any], None], batch: Any, images: int
    ) -> None:
        self.device = next(model.parameters()).device
        self.held_bytes, traced = memory_in_use(self.device), copy.deepcopy(model).train()
        tracker = memory_tracker(traced)
        with tracker:
            learn(traced, batch)
        activations = max(peak['activations'] for peak in tracker.peaks.values())
        self.per_image = activations / images
        trained = sum(param.nbytes for param in model.parameters() if param.requires_grad)
        self.gradient_and_state_bytes = (1 + ADAMW_STATES) * trained

    def log(self, logger: logging.Logger, batch_size: int) -> None:
        """Log the peak with this many images in a step, if the memory of the device is known.

        It warns if the peak exceeds the memory.

        Raises:
            ConfigError: if the tensors alone exceed the memory of the machine or the GPU.
        """
        if not self.held_bytes or self.device.type not in OVERHEAD:
            return
        tensors, overhead = batch_size * self.per_image, OVERHEAD[self.device.type]
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
        message += (
            f': give {size}, a smaller --img-size, or --cfg-options model.backbone.with_cp=True, '
            'which recomputes blocks instead of storing their activations.'
        )
        if self.gradient_and_state_bytes + tensors > free:
            raise ConfigError(message)
        logger.warning(message)


def memory_in_use(device: torch.device) -> int:
    """The bytes that this process holds on a GPU, or on the machine if that is known."""
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
