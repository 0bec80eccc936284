"""Augmentation on the training device."""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from mmengine.registry import TRANSFORMS
from pydantic import Field
from torch import Tensor
from typing_extensions import Required, TypedDict, Unpack

from vit_plugin.arguments import refusing
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.fields import Fraction, Numbers, Positive, PositiveInt, Typed
from vit_plugin.registry import MODELS

with needed_by('AugmentingPreprocessor'):
    from mmpretrain.models import ClsDataPreprocessor

from vit_plugin.data.batch_augment import BATCHED, check_batched


class BatchAugments(TypedDict, total=False):
    """Mixup and CutMix, as arguments of MMPretrain's ``RandomBatchAugment``."""
    augments: Required[Typed | Sequence[Typed]]
    probs: Annotated[Sequence[Fraction], Field(min_length=1)] | None


class PreprocessorOptions(TypedDict, total=False):
    """Arguments of MMPretrain's ``ClsDataPreprocessor``."""
    mean: Numbers | None
    std: Annotated[Sequence[Positive], Field(min_length=1)] | None
    pad_size_divisor: PositiveInt
    pad_value: Annotated[float, Field(ge=-255, le=255, description='a number from -255 to 255')]
    to_rgb: bool
    to_onehot: bool
    num_classes: PositiveInt | None
    batch_augments: BatchAugments | None


@MODELS.register_module()
class AugmentingPreprocessor(ClsDataPreprocessor):
    """MMPretrain's preprocessor with augmentation of uint8 batches on the device, before they are normalised.

    Args:
        augments: transforms for the whole batch in training, in order and with their own arguments: RandomFlip,
            RandomCrop, RandAugment, RandomErasing. All images from the workers must have the same size.
        **kwargs: arguments of ``ClsDataPreprocessor``. Its ``batch_augments`` (Mixup, CutMix) run on the device too.

    Raises:
        ConfigError: if a transform has no form for batches, if MMPretrain refuses it, or if ``mean`` is given without
            ``std``.
    """

    def __init__(self, augments: Sequence[Typed] = (), **kwargs: Unpack[PreprocessorOptions]) -> None:
        mean, std = kwargs.get('mean'), kwargs.get('std')
        if (mean is None) != (std is None) or len(mean or ()) != len(std or ()):
            raise ConfigError(f'AugmentingPreprocessor: mean={mean} and std={std} go together, one number for each '
                              'channel; give both, or none.')
        with refusing('AugmentingPreprocessor'):
            super().__init__(**kwargs)
        self.augments = [self._build(f'augments[{i}]', augment) for i, augment in enumerate(augments)]

    @staticmethod
    def _build(field: str, augment: dict) -> Any:
        with refusing(f'AugmentingPreprocessor: {field}'), \
                TRANSFORMS.switch_scope_and_registry('mmpretrain') as registry:
            built = registry.build(augment)
        check_batched(built)
        return built

    def forward(self, data: dict, training: bool = False) -> dict:
        """See the parent. ``data['inputs']`` are uint8 images (C, H, W) of one size, in a list or stacked."""
        if training and self.augments:
            inputs: Tensor | list[Tensor] = self.cast_data(data['inputs'])
            images = inputs if isinstance(inputs, Tensor) else torch.stack(inputs)
            for augment in self.augments:
                images = BATCHED[type(augment).__name__](augment, images)
            data = dict(data, inputs=images)
        return super().forward(data, training)
