"""The supported image processors of transformers 5.24: their fields and defaults.

They are class attributes in ``models/*/image_processing_*.py``. All fields are listed, since one
that no reader expects is an error, see :class:`~vit_plugin.weights.foreign_config.ConfigKind`.
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
_SQUARE_224 = dict(height=224, width=224)
_SQUARE_256 = dict(height=256, width=256)
_SQUARE_512 = dict(height=512, width=512)
_IMAGENET = (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
_UNUSED = {
    'names of classes': 'image_processor_type feature_extractor_type processor_class '
    'auto_map _processor_class',
    'the form of inputs and outputs': 'device disable_grouping return_tensors data_format '
    'input_data_format _valid_processor_keys images_kwargs image_seq_length',
    'images become RGB in any case': 'do_convert_rgb',
    'classes of pixels, which these models do not predict': 'do_reduce_labels reduce_labels',
    'whether one number is a square or the shorter edge: each kind defines it': 'default_to_square',
}


def processor_kind(
    resample: int,
    mean: tuple[float, ...] = _HALVES,
    std: tuple[float, ...] = _HALVES,
    size: dict[str, int] | None = None,
    crop: int = 0,
    **fields: object,
) -> ConfigKind:
    """The fields of a class of processors with these defaults.

    Args:
        resample: Pillow's number of the interpolation.
        mean, std: the normalization.
        size: the size that images are resized to. Default: 224 x 224.
        crop: the side of the center crop. 0: no crop by default, and 224 if a file asks for one.
        fields: fields that only this class has, with their defaults.
    """
    return ConfigKind(
        defaults=dict(
            do_resize=True,
            size=size or _SQUARE_224,
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
            **fields,
        ),
        unused=_UNUSED,
    )


_CLIP = processor_kind(
    BICUBIC, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD, dict(shortest_edge=224), crop=224
)
_MOBILE = processor_kind(BILINEAR, size=dict(shortest_edge=256), crop=224)
# By the name of the class without ImageProcessor.
PROCESSORS = {
    'ViT': processor_kind(BILINEAR),
    'DeiT': processor_kind(BICUBIC, size=_SQUARE_256, crop=224),
    'CLIP': _CLIP,
    'Bit': _CLIP,
    'Siglip': processor_kind(BICUBIC),
    'DINOv3ViT': processor_kind(BILINEAR, *_IMAGENET),
    'Beit': processor_kind(BICUBIC),
    'ConvNext': processor_kind(BICUBIC, size=dict(shortest_edge=384), crop_pct=224 / 256),
    'Pvt': processor_kind(BICUBIC, *_IMAGENET),
    'Segformer': processor_kind(BILINEAR, *_IMAGENET, _SQUARE_512),
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
# For these kinds, a single number as size is the shorter edge.
SHORTER_EDGE_KINDS = (
    'CLIP', 'Bit', 'ConvNext', 'Levit', 'PoolFormer', 'MobileNetV1', 'MobileNetV2', 'MobileViT',
)  # fmt: skip
