"""Memory of a training on this machine, by torch's trackers of a plan."""

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vit_plugin.errors import ConfigError
from vit_plugin.measure.planning.cost import GIB
from vit_plugin.measure.planning.tracing import memory_tracker

TRACED_IMAGES = 2  # images of the traced step; a batch norm of small maps rejects a single one
# Memory beside the tensors that are traced: buffers of libraries, and gaps between tensors. On a
# CPU as measured (docs/benchmarks.md), on a GPU as a plan reserves it.
OVERHEAD = dict(cpu=1.5, cuda=1.1)
ADAMW_STATES = 2  # values of AdamW for each that is learned; Muon keeps fewer


class Needed:
    """The bytes of a training.

    Args:
        model: the model.
        learn: a step of a model with a batch, up to the gradients.
        batch: some images.
        images: their number.

    Attributes:
        held: what the process has before the first step.
        learned: gradients and the state of the optimizer.
        per_image: of the tensors that each image of a step adds.
    """

    def __init__(
        self, model: Any, learn: Callable[[Any, Any], None], batch: Any, images: int
    ) -> None:
        self.device = next(model.parameters()).device
        self.held, traced = held_on(self.device), copy.deepcopy(model).train()
        tracker = memory_tracker(traced)
        with tracker:
            learn(traced, batch)
        activations = max(held['activations'] for held in tracker.peaks.values())
        self.per_image = activations / images
        trained = sum(part.nbytes for part in model.parameters() if part.requires_grad)
        self.learned = (1 + ADAMW_STATES) * trained

    def say(self, logger: logging.Logger, batch_size: int) -> None:
        """Log the peak with so many images in a step, where the memory of the device is known.

        It warns where that is more than there is.

        Raises:
            ConfigError: if the tensors alone are more than the machine or the GPU has.
        """
        if not self.held or self.device.type not in OVERHEAD:
            return
        tensors, overhead = batch_size * self.per_image, OVERHEAD[self.device.type]
        peak = self.held + self.learned + overhead * tensors
        free = free_on(self.device)
        place = 'machine' if self.device.type == 'cpu' else 'GPU'
        has = '' if free is None else f', and the {place} has {(self.held + free) / GIB:.1f}'
        said = f'The training takes about {peak / GIB:.1f} GiB of memory{has}'
        if free is None or peak <= self.held + free:
            logger.info(f'{said}.')
            return
        fitting = int((free - self.learned) / (overhead * self.per_image))
        size = f'--batch-size {fitting}' if fitting > 0 else 'a smaller --arch'
        said += (
            f': give {size}, a smaller --img-size, or --cfg-options '
            'model.backbone.with_cp=True, which computes blocks twice in place of keeping them.'
        )
        if self.learned + tensors > free:
            raise ConfigError(said)
        logger.warning(said)


def held_on(device: torch.device) -> int:
    """The bytes that this process has: of a GPU, or of the machine where that is known."""
    if device.type == 'cuda':
        return torch.cuda.memory_allocated(device)
    return _sizes('/proc/self/status').get('VmRSS', 0)


def free_on(device: torch.device) -> int | None:
    """The bytes that this process can still take, or None where that is not known."""
    if device.type == 'cuda':
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    return _sizes('/proc/meminfo').get('MemAvailable')


def _sizes(path: str) -> dict[str, int]:
    """The sizes in a file of Linux's, in bytes by their names; nothing on other systems."""
    if not Path(path).is_file():
        return {}
    rows = (line.partition(':') for line in Path(path).read_text().splitlines())
    return {name: int(size[:-2]) * 1024 for name, _, size in rows if size.endswith(' kB')}
