"""Random numbers of a step that depend only on (seed, iteration, rank)."""

from typing import Any

import torch
from mmengine.device import get_device
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.data.seeded import STEP, VALIDATION, seed_host, seeds
from vit_plugin.registry import HOOKS

from .kept_threads import keep_threads


@HOOKS.register_module()
class SeedHook(Hook):
    """Seeds all generators before each step and each validation. Our runner always registers it.

    Dropout, drop path, mixing and augmentation on the device then draw the same numbers in a run
    that was interrupted as in one that was not. Samples are seeded one by one, see
    :mod:`vit_plugin.data.seeded`. A resumed run has the threads of its start, see
    :func:`.kept_threads.keep_threads`.
    """

    priority = 'VERY_HIGH'

    def before_train(self, runner: Runner) -> None:
        keep_threads(runner)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        seed_step(runner.base_seed, STEP, runner.iter)

    def before_val(self, runner: Runner) -> None:
        seed_step(runner.base_seed, VALIDATION, runner.iter)


def seed_step(seed: int, purpose: int, iteration: int) -> None:
    """Seed the generators of this process, on the CPU and on its device.

    Args:
        seed: the seed of the run.
        purpose: ``STEP`` or ``VALIDATION``, so that the two draw different numbers.
        iteration: the position.
    """
    words = seeds(seed, purpose, iteration, get_rank())
    seed_host(words)  # uses the first three of four
    device_seed = words[3]
    device = get_device()
    if device == 'cuda':
        torch.cuda.manual_seed(device_seed)  # seeds only the current device, without a sync
    elif device != 'cpu':
        torch.manual_seed(device_seed)  # seeds all devices
