"""Self-supervised methods, as sections of a config."""

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
FEATURE_LOSSES: list[Section] = [  # losses for a teacher with other classes or without classes
    dict(type='vit_plugin.VectorDistillation', distance='cosine'),
    dict(type='vit_plugin.MapDistillation', distance='cosine'),
]
SIMILARITY_LOSS = dict(type='vit_plugin.SimilarityDistillation')


class Student(NamedTuple):
    """A backbone to pre-train.

    Attributes:
        backbone: its arguments, with the image size.
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
        base: the file of ``_base_/selfsup`` with its necks and heads, or ''.
        model: (student) -> what it adds to the base.
        steps: (student) -> the transforms after loading.
        preprocessor: the class of the preprocessor.
        continues: whether it continues a model, at its native size and by LoRA.
    """

    base: str
    model: Callable[[Student], Section]
    steps: Callable[[Student], list[Section]]
    preprocessor: str = 'SelfSupDataPreprocessor'
    continues: bool = False


def _mocov3(student: Student) -> Section:
    # Training is unstable unless the patch projection is frozen (arXiv:2104.02057, Section 4).
    frozen = {} if student.is_hybrid else dict(patch_embed=dict(frozen=True))
    return dict(backbone={**student.backbone, **frozen}, neck=dict(in_channels=student.width))


def _with_neck_channels(student: Student) -> Section:
    return dict(backbone=student.backbone, neck=dict(in_channels=student.width))


def _masked_dino(student: Student) -> Section:
    return _with_neck_channels(
        student._replace(backbone={**student.backbone, 'type': 'vit_plugin.IBOTViT'})
    )


def _mae(student: Student) -> Section:
    patches = (student.size // student.stride) ** 2
    return dict(
        backbone={**student.backbone, 'type': 'vit_plugin.MAEViT', 'with_cls_token': True},
        neck=dict(num_patches=patches, patch_size=student.stride, embed_dim=student.width),
        head=dict(patch_size=student.stride),
    )


def _simmim(student: Student) -> Section:
    return dict(
        backbone={**student.backbone, 'type': 'vit_plugin.SimMIMViT', 'out_type': 'featmap'},
        neck=dict(in_channels=student.width, encoder_stride=student.stride),
        head=dict(patch_size=student.stride),
    )


def _mask_squares(student: Student) -> list[Section]:
    """A crop with a mask whose squares are two patches wide if these fit, at most 32 pixels."""
    square = 2 * student.stride
    fits = student.size % square == 0 and square <= 32
    mask = dict(
        type='SimMIMMaskGenerator',
        input_size=student.size,
        mask_patch_size=square if fits else student.stride,
        model_patch_size=student.stride,
        mask_ratio=0.6,
    )
    return [*student.crop(0.67), mask]


def _multi_crop(student: Student) -> list[Section]:
    """Two large and four small crops, as views of one image."""
    small = rounded_up(student.size // 2, student.stride)
    views = [student.crop(0.4), student.crop(0.1, 0.4, size=small)]
    transforms = [[*view, *COLOR_AUGMENTATIONS] for view in views]
    return [dict(type='MultiView', num_views=[2, 4], transforms=transforms)]


METHODS = {
    'mocov3': Method(
        base='mocov3',
        model=_mocov3,
        steps=lambda student: [
            dict(
                type='MultiView',
                num_views=[2],
                transforms=[[*student.crop(0.2), *COLOR_AUGMENTATIONS]],
            )
        ],
    ),
    'dino': Method('dino', _with_neck_channels, _multi_crop),
    'dinov2': Method('dinov2', _masked_dino, _multi_crop),
    'mae': Method('mae', _mae, lambda student: student.crop(0.2)),
    'simmim': Method('simmim', _simmim, _mask_squares),
    'distill': Method(
        base='',
        model=lambda student: dict(
            type='vit_plugin.Distiller',
            backbone=student.backbone,
            losses=[*FEATURE_LOSSES, SIMILARITY_LOSS],
        ),
        steps=lambda student: student.crop(0.2),
        preprocessor='ClsDataPreprocessor',
    ),
    **{
        name: Method(base, _with_neck_channels, _multi_crop, continues=True)
        for name, base in declared_rows('continuations').items()
    },
}
