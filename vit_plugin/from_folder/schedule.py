"""Length and schedule of a training."""

import math
from collections.abc import Callable
from typing import NamedTuple

from vit_plugin.arguments.fields import Section


def adamw(rate: float, weight_decay: float) -> Section:
    """AdamW, in one kernel for all parameters."""
    return dict(type='AdamW', lr=rate, weight_decay=weight_decay, fused=True)


def muon(rate: float, weight_decay: float) -> Section:
    """Muon, whose cost in each step only small models repay on a CPU."""
    return dict(type='vit_plugin.Muon', lr=rate, weight_decay=weight_decay)


STEM = 'backbone.patch_embed.backbone'  # the CNN of a stem, by its name in a model


class Schedule(NamedTuple):
    """How long a model of some kind is trained, and how fast it learns.

    Attributes:
        steps: optimizer steps that a training aims at.
        epochs: the fewest and the most epochs.
        batch: the fewest and the most images of a batch.
        rate, at: the learning rate for batches of ``at`` images.
        length: epochs that the schedule is written for; its warm-up is one of them.
        weight_decay: of all but norms, biases and positions.
        layer_decay: factor of the rate from a block to the one before it.
        stem_rate: factor of the rate of the stem's CNN.
        optimizer: the section of a config for a rate and a weight decay.
        clip: the largest norm of a step's gradient.
    """

    steps: int
    epochs: tuple[int, int]
    batch: tuple[int, int]
    rate: float
    at: int
    length: int
    weight_decay: float = 0.05
    layer_decay: float = 1.0
    stem_rate: float = 1.0
    optimizer: Callable[[float, float], Section] = adamw
    clip: float = 1.0

    def batch_size_for(self, count: int) -> int:
        """The largest power of two of which an epoch has 20 steps, within bounds."""
        least, most = self.batch
        return min(max(2 ** int(math.log2(max(count / 20, 1))), least), most, count)

    def epochs_for(self, count: int, batch_size: int) -> int:
        """The epochs that have about as many steps, within bounds."""
        least, most = self.epochs
        return min(max(round(self.steps * batch_size / count), least), most)

    def rate_for(self, batch_size: int) -> float:
        """The learning rate, scaled by the square root of the batch size (arXiv:2205.10287).

        It is rounded to two digits.
        """
        return float(f'{self.rate * math.sqrt(batch_size / self.at):.1e}')


# A complete model that was trained, for other data: LW-DETR's rates, and fewer steps than
# RetinaNet's.
CONTINUED_DETECTOR = Schedule(
    1000, (6, 36), (4, 4), 1e-4, 16, 12, weight_decay=1e-4, layer_decay=0.8
)


def validation_interval(epochs: int, val_share: float) -> int:
    """Epochs between two validations, see :func:`training_sections`."""
    return min(max(math.ceil(epochs / 50), math.ceil(val_share)), epochs)


def training_sections(
    schedule: Schedule,
    epochs: int,
    batch_size: int,
    monitor: str,
    patience: int | None,
    val_share: float = 0.0,
) -> Section:
    """An optimizer with a warm-up and the cosine; 50 validations and checkpoints at most.

    Args:
        schedule: how fast the model learns.
        epochs: length of the run.
        batch_size: images of a step.
        monitor, patience: the run ends when so many validations have not improved this metric.
            None: it does not.
        val_share: images to validate, as a share of those to train on. A run learns from at least
            as many images as it validates on.
    """
    interval = validation_interval(epochs, val_share)
    hooks: dict[str, Section] = dict(checkpoint=dict(interval=interval), logger=dict(interval=10))
    if patience:
        hooks['early_stopping'] = dict(
            type='EarlyStoppingHook',
            monitor=monitor,
            rule='greater',
            min_delta=1e-4,
            patience=patience,
        )
    paramwise: Section = dict(layer_decay_rate=schedule.layer_decay, flat_decay_mult=0.0)
    if schedule.stem_rate != 1:
        paramwise['custom_keys'] = {STEM: dict(lr_mult=schedule.stem_rate)}
    return dict(
        optim_wrapper=dict(
            type='vit_plugin.OptimWrapper',
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=paramwise,
            optimizer=schedule.optimizer(schedule.rate_for(batch_size), schedule.weight_decay),
            clip_grad=dict(max_norm=schedule.clip),
        ),
        param_scheduler=[
            dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
            dict(type='CosineAnnealingLR', begin=1, convert_to_iter_based=True),
        ],
        schedule_length=schedule.length,
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=interval),
        val_cfg=dict(),
        test_cfg=dict(),
        default_hooks=hooks,
        auto_scale_lr=dict(base_batch_size=batch_size),
    )
