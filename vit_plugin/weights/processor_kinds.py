"""The image processors of transformers 5.24 that are read: their fields and defaults.

``models/*/image_processing_*.py``, the class attributes of each.
"""

from timm.data import (
    IMAGENET_DEFAULT_MEAN,
    IMAGENET_DEFAULT_STD,
    OPENAI_CLIP_MEAN,
    OPENAI_CLIP_STD,
)

from .foreign_config import ConfigKind

BILINEAR, BICUBIC = 2, 3  # Pillow's numbers
_HALVES = (0.5, 0.5, 0.5)
_SQUARE, _LARGER = (dict(height=side, width=side) for side in (224, 256))
_UNUSED = {
    'names of classes': 'image_processor_type feature_extractor_type processor_class '
    'auto_map _processor_class',
    'the form of inputs and outputs': 'device disable_grouping return_tensors data_format '
    'input_data_format _valid_processor_keys images_kwargs image_seq_length',
    'images become RGB in any case': 'do_convert_rgb',
    'classes of pixels, which these models do not predict': 'do_reduce_labels reduce_labels',
    'how a size in one number is meant, which each kind says': 'default_to_square',
}


def processor_kind(
    resample: int,
    mean: tuple[float, ...] = _HALVES,
    std: tuple[float, ...] = _HALVES,
    size: dict[str, int] | None = None,
    crop: bool = False,
    **more: object,
) -> ConfigKind:
    """A class of processors with these defaults."""
    return ConfigKind(
        defaults=dict(
            do_resize=True,
            size=size or _SQUARE,
            resample=resample,
            do_center_crop=crop,
            crop_size=_SQUARE,
            do_rescale=True,
            rescale_factor=1 / 255,
            do_normalize=True,
            image_mean=mean,
            image_std=std,
            do_pad=None,
            pad_size=None,
            **more,
        ),
        unused=_UNUSED,
    )


_CLIP = processor_kind(
    BICUBIC, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD, dict(shortest_edge=224), crop=True
)
PROCESSORS = {
    'ViT': processor_kind(BILINEAR),
    'DeiT': processor_kind(BICUBIC, size=_LARGER, crop=True),
    'CLIP': _CLIP,
    'Bit': _CLIP,
    'Siglip': processor_kind(BICUBIC),
    'DINOv3ViT': processor_kind(BILINEAR, IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD),
    'Beit': processor_kind(BICUBIC),
    'ConvNext': processor_kind(BICUBIC, size=dict(shortest_edge=384), crop_pct=224 / 256),
}
SHORTER = ('CLIP', 'Bit', 'ConvNext')  # to which a size in one number is the shorter edge
