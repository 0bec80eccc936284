"""MMPretrain's single-image transforms that can run on whole batches."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from vit_plugin.errors import ConfigError

from .batch_augment import apply_operation, change_rows, crop, erase, flip, rand_augment
from .batch_operations import OPERATIONS, warp
from .multi_view import CROP_INTERPOLATIONS, grayscale, jitter, resized_crop


def apply_batched(transform: Any, images: Tensor) -> Tensor:
    """Transform uint8 images (B, C, H, W), each with its own random choices."""
    return BATCH_VERSIONS[type(transform).__name__](transform, images)


def apply_to_some(transform: Any, images: Tensor) -> Tensor:
    """RandomApply: transform some of the images."""

    def change(images: Tensor) -> Tensor:
        for inner in transform:
            images = apply_batched(inner, images)
        return images

    images = images.clone()
    change_rows(images, [i for i in range(len(images)) if transform.random_apply()], change)
    return images


# MMPretrain's transform -> its batch version.
BATCH_VERSIONS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    **dict.fromkeys(OPERATIONS, apply_operation),
    'RandAugment': rand_augment,
    'RandomFlip': flip,
    'RandomErasing': erase,
    'RandomCrop': crop,
    'RandomResizedCrop': resized_crop,
    'ColorJitter': jitter,
    'RandomGrayscale': grayscale,
    'RandomApply': apply_to_some,
}


def check_batched(transform: Any) -> None:
    """Check that a transform has a batch version.

    Raises:
        ConfigError: if the transform, or one of those inside it, is not in the tables, or has an
            option that its batch version lacks.
    """
    name = type(transform).__name__
    if name not in BATCH_VERSIONS:
        raise ConfigError(
            f'augments: {name} cannot be applied to batches; leave it in the pipeline, and give '
            f'some of {", ".join(BATCH_VERSIONS)}.'
        )
    if getattr(transform, 'pad_if_needed', False):
        raise ConfigError(
            'augments: RandomCrop of batches takes no pad_if_needed, as all images are of one '
            'size; give padding.'
        )
    if name == 'RandomResizedCrop' and transform.interpolation not in CROP_INTERPOLATIONS:
        raise ConfigError(
            'augments: RandomResizedCrop of batches has no '
            f'interpolation={transform.interpolation!r}; take one of '
            f'{", ".join(CROP_INTERPOLATIONS)}.'
        )
    if name == 'RandomApply':
        for inner in transform:
            check_batched(inner)
        return
    for operation in (transform, *getattr(transform, 'transforms', ())):
        _, compute = OPERATIONS.get(type(operation).__name__, (None, None))
        if compute is warp and operation.interpolation == 'lanczos':
            raise ConfigError(
                f'augments: {type(operation).__name__} of batches has no '
                "interpolation='lanczos'; take one of nearest, bilinear, bicubic."
            )
    unknown = {
        type(operation).__name__ for operation in getattr(transform, 'transforms', ())
    } - OPERATIONS.keys()
    if unknown:
        raise ConfigError(
            f'augments: the operations {", ".join(sorted(unknown))} of {name} cannot be '
            f'applied to batches; choose policies of {", ".join(OPERATIONS)}.'
        )
