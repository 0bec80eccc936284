"""What tests of pre-training share: the tiny run without labels, and the place of a step in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.logging import MessageHub


def unlabeled(
    model: Mapping[str, Any], view: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Settings of ``tiny_cfg`` that train a model on views of its images, with further steps."""
    preprocessor = dict(
        type='vit_plugin.MultiViewPreprocessor', mean=[127.5], std=[127.5], views=[view]
    )
    return {
        'model': dict(model, data_preprocessor=preprocessor),
        'train_dataloader.dataset.pipeline': [*steps, dict(type='PackInputs')],
        'val_dataloader': None,
        'val_cfg': None,
        'val_evaluator': None,
        'train_cfg.val_interval': 9,
        'custom_hooks': [],
        'default_hooks.checkpoint.save_best': None,
    }


def at_first_step() -> MessageHub:
    """The run's place, which averages and the temperature ask for: at the first of ten steps."""
    hub = MessageHub.get_current_instance()
    hub.update_info('max_iters', 10)
    hub.update_info('iter', 0)
    return hub
