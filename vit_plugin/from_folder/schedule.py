"""Length and schedule of a training."""

import math
from typing import Any


def batch_size_for(count: int, most: int, least: int = 8) -> int:
    """The largest power of two of which an epoch has 20 steps, within bounds."""
    return min(max(2 ** int(math.log2(max(count / 20, 1))), least), most, count)


def epochs_for(count: int, batch_size: int, steps: int, least: int, most: int) -> int:
    """The epochs of about so many steps, within bounds."""
    return min(max(round(steps * batch_size / count), least), most)


def for_batch(rate: float, at: int, batch_size: int) -> float:
    """AdamW's learning rate scaled by the square root of the batch size (arXiv:2205.10287).

    It is rounded to two digits.
    """
    return float(f'{rate * math.sqrt(batch_size / at):.1e}')


def adamw(rate: float, weight_decay: float = 0.05) -> dict[str, Any]:
    """AdamW, with a learning rate for this batch size."""
    return dict(type='AdamW', lr=rate, weight_decay=weight_decay, fused=True)


def muon(rate: float, weight_decay: float = 0.05) -> dict[str, Any]:
    """Muon, whose cost in each step only small models repay on a CPU."""
    return dict(type='vit_plugin.Muon', lr=rate, weight_decay=weight_decay)


def training_sections(
    optimizer: dict[str, Any],
    layer_decay: float,
    warm_up: int,
    epochs: int,
    batch_size: int,
    monitor: str,
    patience: int | None,
    val_share: float = 0.0,
) -> dict[str, Any]:
    """An optimizer with a warm-up and the cosine; 50 validations and checkpoints at most.

    Args:
        optimizer: its weight decay is of all but norms, biases and positions.
        layer_decay: factor of the rate from a block to the one before it.
        warm_up: the warm-up is one part of so many.
        epochs: length of the run.
        batch_size: the one that the learning rate is for.
        val_share: images to validate, as a share of those to train on. A run learns from at least
            as many images as it validates on.
        monitor, patience: the run ends when so many validations have not improved this metric.
            None: it does not.
    """
    interval = min(max(math.ceil(epochs / 50), math.ceil(val_share)), epochs)
    hooks: dict[str, dict[str, Any]] = dict(
        checkpoint=dict(interval=interval), logger=dict(interval=10)
    )
    if patience:
        hooks['early_stopping'] = dict(
            type='EarlyStoppingHook',
            monitor=monitor,
            rule='greater',
            min_delta=1e-4,
            patience=patience,
        )
    return dict(
        optim_wrapper=dict(
            type='vit_plugin.OptimWrapper',
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=dict(layer_decay_rate=layer_decay, flat_decay_mult=0.0),
            optimizer=optimizer,
            clip_grad=dict(max_norm=1.0),
        ),
        param_scheduler=[
            dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
            dict(type='CosineAnnealingLR', begin=1, convert_to_iter_based=True),
        ],
        schedule_length=warm_up,
        train_cfg=dict(by_epoch=True, max_epochs=epochs, val_interval=interval),
        val_cfg=dict(),
        test_cfg=dict(),
        default_hooks=hooks,
        auto_scale_lr=dict(base_batch_size=batch_size),
    )
