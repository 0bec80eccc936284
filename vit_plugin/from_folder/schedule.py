"""Length, optimizer and learning rates of a training."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from vit_plugin.arguments.fields import Section


def adamw(rate: float, weight_decay: float) -> Section:
    """AdamW, with one kernel for all parameters."""
    return dict(type='AdamW', lr=rate, weight_decay=weight_decay, fused=True)


def muon(rate: float, weight_decay: float) -> Section:
    """Muon. Its cost per step pays off on a CPU only for small models."""
    return dict(type='vit_plugin.Muon', lr=rate, weight_decay=weight_decay)


# Rate factors of the component that begins with weights: the backbone, or the CNN of its stem. The
# other components are new, and learn at the rate of a training from scratch.
SLOWER_BACKBONE = {'backbone': 0.1}
SLOWER_STEM = {'backbone.patch_embed.backbone': 0.1}


class Schedule(NamedTuple):
    """Length and learning rates of a training.

    Attributes:
        steps: target number of optimizer steps.
        epochs: minimum and maximum of epochs.
        batch: minimum and maximum of images in a batch.
        rate: the learning rate for batches of ``rate_batch`` images.
        schedule_epochs: epochs that the written schedule covers, one of them for warm-up; it is
            stretched to the length of the run.
        weight_decay: weight decay, except for norms, biases and positions.
        layer_decay: layer-wise decay: the factor of the rate from a block to the one before it.
        rate_factors: factors of the rate, by a substring of the parameters' names.
        optimizer: (learning rate, weight decay) -> a section of a config.
        clip: the largest norm of a step's gradient.
    """

    steps: int
    epochs: tuple[int, int]
    batch: tuple[int, int]
    rate: float
    rate_batch: int
    schedule_epochs: int
    weight_decay: float = 0.05
    layer_decay: float = 1.0
    rate_factors: Mapping[str, float] = {}
    optimizer: Callable[[float, float], Section] = adamw
    clip: float = 1.0

    def batch_size_for(self, images: int) -> int:
        """The largest power-of-two batch size that leaves 20 steps per epoch, within bounds."""
        least, most = self.batch
        return min(max(2 ** int(math.log2(max(images / 20, 1))), least), most, images)

    def epochs_for(self, images: int, batch_size: int) -> int:
        """The number of epochs with about ``steps`` steps, within bounds."""
        least, most = self.epochs
        return min(max(round(self.steps * batch_size / images), least), most)

    def rate_for(self, batch_size: int) -> float:
        """The learning rate, scaled by the square root of the batch size (arXiv:2205.10287).

        It is rounded to two digits.
        """
        return float(f'{self.rate * math.sqrt(batch_size / self.rate_batch):.1e}')


# Fine-tune a complete model on other data: LW-DETR's rates, and fewer steps than RetinaNet's.
CONTINUED_DETECTOR = Schedule(
    steps=1000,
    epochs=(6, 36),
    batch=(4, 4),
    rate=1e-4,
    rate_batch=16,
    schedule_epochs=12,
    weight_decay=1e-4,
    layer_decay=0.8,
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
    """Optimizer, warm-up and cosine schedule, with at most 50 validations and checkpoints.

    Args:
        schedule: learning rates and weight decay.
        epochs: length of the run.
        batch_size: images per step.
        monitor, patience: stop after ``patience`` validations without a better ``monitor`` metric;
            None for ``patience``: never.
        val_share: validation images relative to training images. Between validations, at least as
            many images are trained on as validated.
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
    if schedule.rate_factors:
        paramwise['custom_keys'] = {
            name: dict(lr_mult=factor) for name, factor in schedule.rate_factors.items()
        }
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
        schedule_length=schedule.schedule_epochs,
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=interval),
        val_cfg=dict(),
        test_cfg=dict(),
        default_hooks=hooks,
        auto_scale_lr=dict(base_batch_size=batch_size),
    )
