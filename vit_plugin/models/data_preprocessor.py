"""Augment images on the training device, a whole uint8 batch at a time.

MMPretrain's transforms augment image by image in the data workers, which may then limit the speed
of training. The preprocessors here take the same transforms, apply their batch versions in
:mod:`vit_plugin.data.batch_transforms`, and then normalize.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from mmengine.registry import TRANSFORMS
from pydantic import Field
from torch import Tensor
from typing_extensions import Required, TypedDict

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import Fraction, PositiveInt, Typed
from vit_plugin.data.batch_transforms import apply_batched, check_batched
from vit_plugin.errors import ConfigError
from vit_plugin.registry import CLASSIFIER_SCOPE, MODELS, needed_class

# Without MMPretrain, stand-ins from vit_plugin.projects.
ClsDataPreprocessor: Any = needed_class(
    'AugmentingPreprocessor', 'mmpretrain.models:ClsDataPreprocessor'
)
SelfSupDataPreprocessor: Any = needed_class(
    'MultiViewPreprocessor', 'mmpretrain.models:SelfSupDataPreprocessor'
)


class BatchAugments(TypedDict, total=False):
    """Mixup and CutMix, as arguments of MMPretrain's ``RandomBatchAugment``."""

    augments: Required[Typed | Sequence[Typed]]
    probs: Annotated[Sequence[Fraction], Field(min_length=1)] | None


@MODELS.register_module()
class AugmentingPreprocessor(ClsDataPreprocessor):
    """MMPretrain's preprocessor with on-device augmentation of uint8 batches before normalization.

    Args:
        augments: transforms for the whole batch in training, in order and with their own arguments:
            RandomFlip, RandomCrop, RandAugment, RandomErasing. All images from the workers must
            have the same size.
        batch_augments: Mixup and CutMix, see :class:`BatchAugments`.
        **kwargs: further arguments of ``ClsDataPreprocessor``.

    Raises:
        ConfigError: if a transform has no batch version, if MMPretrain rejects it, or if ``mean``
            is given without ``std``.
    """

    def __init__(
        self,
        augments: Sequence[Typed] = (),
        batch_augments: BatchAugments | None = None,
        **kwargs: Any,
    ) -> None:
        mean, std = kwargs.get('mean'), kwargs.get('std')
        if (mean is None) != (std is None) or len(mean or ()) != len(std or ()):
            raise ConfigError(
                f'AugmentingPreprocessor: mean={mean} and std={std} go together, one number for '
                'each channel; give both, or none.'
            )
        with as_config_error('AugmentingPreprocessor'):
            super().__init__(batch_augments=batch_augments, **kwargs)
        self.augments = build_batched('AugmentingPreprocessor: augments', augments)

    def forward(self, data: dict, training: bool = False) -> dict:
        """See the parent. ``data['inputs']`` are uint8 images of one size, listed or stacked."""
        if training and self.augments:
            data = dict(
                data, inputs=augmented(stacked(self.cast_data(data['inputs'])), self.augments)
            )
        return super().forward(data, training)


class ViewCfg(TypedDict, total=False):
    """One or several views of each image, all with the same random augmentations.

    Attributes:
        augments: transforms for the whole batch, see :class:`AugmentingPreprocessor`.
        number: number of such views. Default: 1.
    """

    augments: Required[Sequence[Typed]]
    number: PositiveInt


@MODELS.register_module()
class MultiViewPreprocessor(SelfSupDataPreprocessor):
    """MMPretrain's self-supervised preprocessor that makes views of uint8 batches on the device.

    Even on a CPU, this is much faster than MMPretrain's ``MultiView``, which augments image by
    image.

    Args:
        views: the views, in order. A single view is passed to the model as a tensor, several as a
            list.
        **kwargs: arguments of ``SelfSupDataPreprocessor``.

    Raises:
        ConfigError: if a transform has no batch version, or if MMPretrain rejects it.
    """

    def __init__(
        self,
        views: Annotated[Sequence[ViewCfg], Field(min_length=1)],
        **kwargs: Any,
    ) -> None:
        with as_config_error('MultiViewPreprocessor'):
            super().__init__(**kwargs)
        self.views: list[list[Any]] = []  # the transforms of each view
        for i, view in enumerate(views):
            field = f'MultiViewPreprocessor: views[{i}].augments'
            self.views += [build_batched(field, view['augments'])] * view.get('number', 1)

    def forward(self, data: dict, training: bool = False) -> dict:
        """See the parent. ``data['inputs']`` are uint8 images of one size, listed or stacked."""
        images = stacked(self.cast_data(data['inputs']))
        views = [augmented(images, augments) for augments in self.views] if training else [images]
        return super().forward(
            dict(
                inputs=views if len(views) > 1 else views[0], data_samples=data.get('data_samples')
            ),
            training,
        )


def build_batched(field: str, augments: Sequence[Typed]) -> list[Any]:
    """Build MMPretrain's transforms, each of which must have a batch version.

    Raises:
        ConfigError: if one has none, or if MMPretrain rejects it. The sentence begins with
            ``field``.
    """
    transforms: list[Any] = []
    for i, augment in enumerate(augments):
        with (
            as_config_error(f'{field}[{i}]'),
            TRANSFORMS.switch_scope_and_registry(CLASSIFIER_SCOPE) as registry,
        ):
            transforms.append(registry.build(augment))
        check_batched(transforms[-1])
    return transforms


def augmented(images: Tensor, augments: Sequence[Any]) -> Tensor:
    """The batch after these transforms, in order."""
    for augment in augments:
        images = apply_batched(augment, images)
    return images


def stacked(inputs: Tensor | Sequence[Tensor]) -> Tensor:
    """Images of one size as a batch (B, C, H, W)."""
    return inputs if isinstance(inputs, Tensor) else torch.stack(list(inputs))
