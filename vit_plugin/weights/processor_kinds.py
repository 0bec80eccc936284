"""The supported image processors of transformers 5.24: their fields and defaults.

They are class attributes in ``models/*/image_processing_*.py``.
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
_SQUARE, _LARGER, _OF_MAPS = (dict(height=side, width=side) for side in (224, 256, 512))
_IMAGENET = (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
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
    crop: int = 0,
    **more: object,
) -> ConfigKind:
    """A class of processors with these defaults. The default crop is 224."""
    return ConfigKind(
        defaults=dict(
            do_resize=True,
            size=size or _SQUARE,
            resample=resample,
            do_center_crop=crop > 0,
            crop_size=dict(height=crop or 224, width=crop or 224),
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
    BICUBIC, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD, dict(shortest_edge=224), crop=224
)
_MOBILE = processor_kind(BILINEAR, size=dict(shortest_edge=256), crop=224)
PROCESSORS = {
    'ViT': processor_kind(BILINEAR),
    'DeiT': processor_kind(BICUBIC, size=_LARGER, crop=224),
    'CLIP': _CLIP,
    'Bit': _CLIP,
    'Siglip': processor_kind(BICUBIC),
    'DINOv3ViT': processor_kind(BILINEAR, *_IMAGENET),
    'Beit': processor_kind(BICUBIC),
    'ConvNext': processor_kind(BICUBIC, size=dict(shortest_edge=384), crop_pct=224 / 256),
    'Pvt': processor_kind(BICUBIC, *_IMAGENET),
    'Segformer': processor_kind(BILINEAR, *_IMAGENET, _OF_MAPS),
    'Levit': processor_kind(BICUBIC, *_IMAGENET, dict(shortest_edge=224), crop=224),
    'PoolFormer': processor_kind(
        BICUBIC, *_IMAGENET, dict(shortest_edge=224), crop=224, crop_pct=0.9
    ),
    'EfficientNet': processor_kind(
        BICUBIC, size=dict(height=346, width=346), rescale_offset=False, include_top=True
    ),
    'MobileNetV1': _MOBILE,
    'MobileNetV2': _MOBILE,
    'MobileViT': processor_kind(
        BICUBIC, size=dict(shortest_edge=224), crop=256, do_flip_channel_order=True
    ),
}
# For these, a size in one number is the shorter edge.
SHORTER = (
    'CLIP', 'Bit', 'ConvNext', 'Levit', 'PoolFormer', 'MobileNetV1', 'MobileNetV2', 'MobileViT',
)  # fmt: skip
