"""Augmentation where the training is."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.registry import TRANSFORMS
from torch import Tensor

from vit_plugin.errors import needed_by
from vit_plugin.registry import MODELS

with needed_by('AugmentingPreprocessor'):
    from mmpretrain.models import ClsDataPreprocessor

from vit_plugin.data.batch_augment import BATCHED, check_batched


@MODELS.register_module()
class AugmentingPreprocessor(ClsDataPreprocessor):
    """MMPretrain's preprocessor, which augments uint8 batches on the device before it normalises them.

    Args:
        augments: transforms of the pipeline, in their order and with their own arguments, that the whole batch goes
            through in training: RandomFlip, RandomCrop, RandAugment, RandomErasing. The images that come out of
            the workers must be of one size.
        **kwargs: of ``ClsDataPreprocessor``; ``batch_augments`` (Mixup, CutMix) are on the device there too.

    Raises:
        ConfigError: for a transform that has no form for batches.
    """

    def __init__(self, augments: Sequence[dict] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with TRANSFORMS.switch_scope_and_registry('mmpretrain') as registry:
            self.augments = [registry.build(augment) for augment in augments]
        for augment in self.augments:
            check_batched(augment)

    def forward(self, data: dict, training: bool = False) -> dict:
        """As the parent's; ``data['inputs']`` are uint8 images (C, H, W) of one size, in a list or stacked."""
        if training and self.augments:
            inputs: Tensor | list[Tensor] = self.cast_data(data['inputs'])
            images = inputs if isinstance(inputs, Tensor) else torch.stack(inputs)
            for augment in self.augments:
                images = BATCHED[type(augment).__name__](augment, images)
            data = dict(data, inputs=images)
        return super().forward(data, training)
