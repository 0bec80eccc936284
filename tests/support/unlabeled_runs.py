"""Settings for tiny runs of pre-training, and a stand-in for their progress."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.logging import MessageHub


def unlabeled(
    model: Mapping[str, Any], view: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Changes of ``tiny_cfg`` that train a model on views of its images, without validation.

    ``view`` is a view of MultiViewPreprocessor; ``steps`` come before the packing in the pipeline.
    """
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
    """Set the run's progress, which momenta and temperatures read, to the first of ten steps."""
    hub = MessageHub.get_current_instance()
    hub.update_info('max_iters', 10)
    hub.update_info('iter', 0)
    return hub
