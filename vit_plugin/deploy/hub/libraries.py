"""The libraries that also read a folder of the hub.

The library's config is written from the sizes of the model. Equality is then tested: the folder is
read back, and outputs are compared, see :class:`~vit_plugin.deploy.hub.written_task.WrittenTask`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vit_plugin.inference.trained_model import TrainedModel

from .hub_folder import PLAIN_STEM

# Tolerances relative to the largest output: for float32, and for models with more rounding, such as
# timm's hybrids, whose different eps a deep ResNet amplifies.
OUTPUT_TOLERANCE, LOOSE = 1e-4, 1e-2
FLOOR_CROP = 'vit_plugin.FloorCenterCrop'
CENTER_CROPS = ('CenterCrop', FLOOR_CROP)


class Library(NamedTuple):
    """A library that reads a folder of the hub.

    Attributes:
        name: its name on the hub.
        example: Python code that reads the folder.
        crop: the center crop that starts at the same pixel as the library's.
    """

    name: str
    example: str
    crop: str


LIBRARIES = {
    'timm': Library(
        'timm',
        "import timm\n\nmodel = timm.create_model('{timm}', pretrained=True).eval()",
        'CenterCrop',
    ),
    'hf': Library(
        'transformers',
        "from transformers import pipeline\n\nprint(pipeline('{task}', '{name}')('photo.jpg'))",
        FLOOR_CROP,
    ),
}


def with_crop(settings: Any, crop: str) -> Any:
    """Replace center crops in settings by this one."""
    if isinstance(settings, Mapping):
        found = {name: with_crop(value, crop) for name, value in settings.items()}
        is_crop = found.get('type') in CENTER_CROPS and {*found} == {'type', 'crop_size'}
        return dict(found, type=crop) if is_crop else found
    if isinstance(settings, (list, tuple)):
        return type(settings)(with_crop(value, crop) for value in settings)
    return settings


def tolerance_of(trained: TrainedModel, dtype: str | None) -> float:
    """The tolerance of outputs, relative to the largest.

    Args:
        trained: the model.
        dtype: dtype of the written weights, if it differs.
    """
    stem = getattr(trained.model.backbone, 'patch_embed', None)
    is_plain = stem is None or type(stem).__name__ == PLAIN_STEM
    return OUTPUT_TOLERANCE if is_plain and dtype in (None, 'float32') else LOOSE
