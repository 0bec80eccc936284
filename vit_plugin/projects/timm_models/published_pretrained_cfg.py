"""Read the classes and the preprocessing of a timm folder, mostly from its ``pretrained_cfg``."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from annotated_types import Len

from vit_plugin.arguments.fields import Fraction, Numbers, PositiveInt, Section
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.processor_pixels import PILLOW_RESAMPLING
from vit_plugin.weights.published import are_default_names
from vit_plugin.weights.published_settings import imagenet_names

from .timm_kinds import CLASS_FIELDS

InputSize = Annotated[Sequence[PositiveInt], Len(3, 3)]
Labels = Sequence[str] | Mapping[str, str] | None
# The classes of transformers. The encoder's config still lists the classes of the timm model.
TIMM_WRAPPER_CLASSIFIER, TIMM_WRAPPER_ENCODER = (
    'TimmWrapperForImageClassification',
    'TimmWrapperModel',
)


def timm_class_names(
    num_rows: int, config: ForeignConfig, pretrained_cfg: ForeignConfig
) -> list[str]:
    """The class names of a classifier with this number of rows; empty for 0.

    A class is called by its description if there is one, else by its label. Without labels, it has
    ImageNet's name if the number fits, else its number.
    """
    pretrained_cfg.require('label_offset', None, 0)
    # True is about the original file, which timm has converted. 'hf' is a loader of the model.
    pretrained_cfg.require('custom_load', False, True)
    if TIMM_WRAPPER_ENCODER in (config.get('architectures', Sequence[str] | None) or ()):
        for part in (config, pretrained_cfg):
            part.ignore(*CLASS_FIELDS)
        return []
    count = config.get('num_classes', int | None)
    pretrained_count = pretrained_cfg.get('num_classes', int | None)
    count = pretrained_count if count is None else count
    if count is not None and count != num_rows:
        raise config.unsupported('num_classes', why=f'where its classifier has {num_rows} rows')
    names = config.get('label_names', Labels) or pretrained_cfg.get('label_names', Labels)
    names = names or config.get('labels', Labels) or pretrained_cfg.get('labels', Labels)
    descriptions = config.get('label_descriptions', Mapping[str, str] | None)
    descriptions = (
        descriptions or pretrained_cfg.get('label_descriptions', Mapping[str, str] | None) or {}
    )
    if isinstance(names, Mapping):
        names = [names.get(str(i), f'class {i}') for i in range(num_rows)]
    if names and len(names) != num_rows:
        raise config.unsupported('label_names', why=f'where its classifier has {num_rows} rows')
    if names and not are_default_names(names):
        return [descriptions.get(name, name) for name in names]
    return imagenet_names(num_rows) or [f'class {i}' for i in range(num_rows)]


def preprocessing(pretrained_cfg: ForeignConfig) -> tuple[list[Section], Section]:
    """Test transforms, and normalization: what ``classifier_settings`` takes."""
    colors = {
        name: [255 * value for value in pretrained_cfg.get(name, Numbers)]
        for name in ('mean', 'std')
    }
    return _test_transforms(pretrained_cfg), colors


def _test_transforms(pretrained_cfg: ForeignConfig) -> list[Section]:
    """timm's test transforms, see ``timm.data.create_transform``, without the normalization."""
    _, height, width = pretrained_cfg.get('input_size', InputSize)
    crop_pct, mode = pretrained_cfg.get('crop_pct', Fraction), pretrained_cfg.get('crop_mode', str)
    pretrained_cfg.require('interpolation', *PILLOW_RESAMPLING)
    method = dict(interpolation=pretrained_cfg['interpolation'], backend='pillow')
    larger = [math.floor(side / crop_pct) for side in (height, width)]
    if mode == 'squash':
        resize = dict(type='Resize', scale=(larger[1], larger[0]), **method)
    elif mode == 'center' and height == width:
        resize = dict(type='ResizeEdge', scale=larger[0], edge='short', **method)
    else:
        raise pretrained_cfg.unsupported('crop_mode', 'input_size')
    # Nothing is cut off if the image is squashed to the size of the crop.
    is_whole = mode == 'squash' and larger == [height, width]
    return [resize] if is_whole else [resize, dict(type='CenterCrop', crop_size=(width, height))]
