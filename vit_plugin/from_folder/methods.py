"""The self-supervised methods of ``vit-plugin pretrain``, as sections of a config."""

from collections.abc import Callable
from typing import NamedTuple

from vit_plugin.arguments.fields import Section
from vit_plugin.files.resizing import rounded_up
from vit_plugin.project import declared_rows

COLOR_JITTER = dict(
    type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1, backend='cv2'
)
COLOR_AUGMENTATIONS: list[Section] = [  # color augmentation of MoCo v3 and DINO, in BGR
    dict(type='RandomApply', prob=0.8, transforms=[COLOR_JITTER]),
    dict(
        type='RandomGrayscale', prob=0.2, keep_channels=True, channel_weights=(0.114, 0.587, 0.299)
    ),
    dict(type='Solarize', thr=128, prob=0.1),
]
FEATURE_LOSSES: list[Section] = [  # for a teacher with other classes or without a classifier
    dict(type='vit_plugin.VectorDistillation', distance='cosine'),
    dict(type='vit_plugin.MapDistillation', distance='cosine'),
]
SIMILARITY_LOSS = dict(type='vit_plugin.SimilarityDistillation')


class BackboneSpec(NamedTuple):
    """The backbone to pre-train and its images. DINO and distillation call it the student.

    Attributes:
        backbone: its section of the config, with the image size.
        width: channels of its tokens.
        size, stride: side of an image and of a patch in pixels.
        is_hybrid: whether a CNN precedes the blocks.
        with_flip: whether images are flipped at random.
    """

    backbone: Section
    width: int
    size: int
    stride: int
    is_hybrid: bool
    with_flip: bool

    def crop(self, least: float, most: float = 1.0, size: int = 0) -> list[Section]:
        """A random resized crop with this range of areas, flipped at random if ``with_flip``."""
        resized_crop = dict(
            type='RandomResizedCrop',
            scale=size or self.size,
            crop_ratio_range=(least, most),
            interpolation='bicubic',
            backend='pillow',
        )
        if not self.with_flip:
            return [resized_crop]
        return [resized_crop, dict(type='RandomFlip', prob=0.5, direction='horizontal')]


class Method(NamedTuple):
    """A self-supervised method.

    Attributes:
        base: name of the file in ``_base_/selfsup`` with the method's model, neck and head, or ''.
        model: (spec) -> the overrides of ``model`` in the base config.
        transforms: (spec) -> the transforms after an image is loaded.
        preprocessor: the class of the ``data_preprocessor``.
        continues: whether it continues the pre-training of a model, at its native size and by LoRA.
    """

    base: str
    model: Callable[[BackboneSpec], Section]
    transforms: Callable[[BackboneSpec], list[Section]]
    preprocessor: str = 'SelfSupDataPreprocessor'
    continues: bool = False


def _mocov3(spec: BackboneSpec) -> Section:
    # Training is unstable unless the patch projection is frozen (arXiv:2104.02057, Section 4).
    frozen = {} if spec.is_hybrid else dict(patch_embed=dict(frozen=True))
    return dict(backbone={**spec.backbone, **frozen}, neck=dict(in_channels=spec.width))


def _with_neck_channels(spec: BackboneSpec) -> Section:
    return dict(backbone=spec.backbone, neck=dict(in_channels=spec.width))


def _dino_with_masks(spec: BackboneSpec) -> Section:
    return _with_neck_channels(
        spec._replace(backbone={**spec.backbone, 'type': 'vit_plugin.IBOTViT'})
    )


def _mae(spec: BackboneSpec) -> Section:
    patches = (spec.size // spec.stride) ** 2
    return dict(
        backbone={**spec.backbone, 'type': 'vit_plugin.MAEViT', 'with_cls_token': True},
        neck=dict(num_patches=patches, patch_size=spec.stride, embed_dim=spec.width),
        head=dict(patch_size=spec.stride),
    )


def _simmim(spec: BackboneSpec) -> Section:
    return dict(
        backbone={**spec.backbone, 'type': 'vit_plugin.SimMIMViT', 'out_type': 'featmap'},
        neck=dict(in_channels=spec.width, encoder_stride=spec.stride),
        head=dict(patch_size=spec.stride),
    )


def _masked_crop(spec: BackboneSpec) -> list[Section]:
    """SimMIM's crop and mask.

    The mask consists of squares two patches wide, or one if two are wider than 32 pixels, SimMIM's
    own size, or do not divide the image.
    """
    square = 2 * spec.stride
    fits = spec.size % square == 0 and square <= 32
    mask = dict(
        type='SimMIMMaskGenerator',
        input_size=spec.size,
        mask_patch_size=square if fits else spec.stride,
        model_patch_size=spec.stride,
        mask_ratio=0.6,
    )
    return [*spec.crop(0.67), mask]


def _multi_crop(spec: BackboneSpec) -> list[Section]:
    """Two large and four small crops, as views of one image."""
    small = rounded_up(spec.size // 2, spec.stride)
    views = [spec.crop(0.4), spec.crop(0.1, 0.4, size=small)]
    transforms = [[*view, *COLOR_AUGMENTATIONS] for view in views]
    return [dict(type='MultiView', num_views=[2, 4], transforms=transforms)]


METHODS = {
    'mocov3': Method(
        base='mocov3',
        model=_mocov3,
        transforms=lambda spec: [
            dict(
                type='MultiView',
                num_views=[2],
                transforms=[[*spec.crop(0.2), *COLOR_AUGMENTATIONS]],
            )
        ],
    ),
    'dino': Method('dino', _with_neck_channels, _multi_crop),
    'dinov2': Method('dinov2', _dino_with_masks, _multi_crop),
    'mae': Method('mae', _mae, lambda spec: spec.crop(0.2)),
    'simmim': Method('simmim', _simmim, _masked_crop),
    'distill': Method(
        base='',
        model=lambda spec: dict(
            type='vit_plugin.Distiller',
            backbone=spec.backbone,
            losses=[*FEATURE_LOSSES, SIMILARITY_LOSS],
        ),
        transforms=lambda spec: spec.crop(0.2),
        preprocessor='ClsDataPreprocessor',
    ),
    # Methods that projects declare: name -> file in _base_/selfsup.
    **{
        name: Method(base, _with_neck_channels, _multi_crop, continues=True)
        for name, base in declared_rows('continuations').items()
    },
}
