"""The libraries that also read a hub folder: timm and transformers.

A library's config is written from the sizes of the model. The folder is then read back, and its
outputs must equal the model's, see :class:`~vit_plugin.deploy.hub.written_task.WrittenTask`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vit_plugin.inference.trained_model import TrainedModel

from .hub_folder import PLAIN_STEM

# Tolerances relative to the largest output. The loose one is for half precision, and for hybrids:
# timm's eps differs, and the difference grows through a deep ResNet.
TOLERANCE = 1e-4
LOOSE_TOLERANCE = 1e-2
# transformers rounds the offset of a crop down; torchvision and timm round half to even.
FLOOR_CROP = 'vit_plugin.FloorCenterCrop'
CENTER_CROPS = ('CenterCrop', FLOOR_CROP)


class Library(NamedTuple):
    """A library that reads a hub folder.

    Attributes:
        name: its name on the hub.
        example: Python code that reads the folder, as a template that ``card.py`` formats.
        crop: the center crop that starts at the same pixel as the library's.
    """

    name: str
    example: str
    crop: str


LIBRARIES = {  # by the name of the format in --to
    'timm': Library(
        'timm',
        example="import timm\n\nmodel = timm.create_model('{timm}', pretrained=True).eval()",
        crop='CenterCrop',
    ),
    'hf': Library(
        'transformers',
        example='from transformers import pipeline\n\n'
        "print(pipeline('{task}', '{name}')('photo.jpg'))",
        crop=FLOOR_CROP,
    ),
}


def with_crop(settings: Any, crop: str) -> Any:
    """Replace center crops in settings by crops of type ``crop``."""
    if isinstance(settings, Mapping):
        changed = {name: with_crop(value, crop) for name, value in settings.items()}
        # Other arguments, such as auto_pad, are not arguments of every crop.
        is_crop = changed.get('type') in CENTER_CROPS and changed.keys() == {'type', 'crop_size'}
        return dict(changed, type=crop) if is_crop else changed
    if isinstance(settings, (list, tuple)):
        return type(settings)(with_crop(value, crop) for value in settings)
    return settings


def tolerance_of(trained: TrainedModel, dtype: str | None) -> float:
    """The tolerance of a library's outputs, relative to the largest.

    Args:
        trained: the model.
        dtype: dtype of the written weights. None: that of the checkpoint.
    """
    stem = getattr(trained.model.backbone, 'patch_embed', None)
    is_plain = stem is None or type(stem).__name__ == PLAIN_STEM
    return TOLERANCE if is_plain and dtype in (None, 'float32') else LOOSE_TOLERANCE
