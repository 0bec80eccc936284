"""The recipe of a RetinaNet (arXiv:1708.02002) for a folder of images with boxes."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from vit_plugin.errors import needed_by
from vit_plugin.files.shipped import base_of
from vit_plugin.models import VisionTransformer

from .object_sizes import FINEST, anchors, largest_image
from .readers.annotated import read_annotated_folder
from .readers.listing import Listing
from .readers.photos import Tree
from .readers.splits import Split
from .recipe import (
    HELD_OUT,
    Recipe,
    data_sections,
    summary,
)
from .request import Request, image_scale, rounded_up
from .schedule import (
    adamw,
    epochs_for,
    for_batch,
    muon,
    training_sections,
)

LARGEST, WINDOW, LARGE_GRID = 1024, 14, 32  # pixels; patches; patches along a side
WIDE, NARROW = 256, 96  # channels of the maps: RetinaNet's, and those of the recipe for BCCD
# Of the scale, where an image is seen so often that it is learned by heart otherwise.
JITTER, OFTEN = (0.8, 1.25), 20


class Detector(NamedTuple):
    """Settings of a kind of detector."""

    name: str
    base: str  # its config in MMDetection
    # Classes, channels, strides, smallest anchor in strides -> entries of model.
    heads: Callable[..., dict[str, Any]]
    metrics: Sequence[str] = ('bbox',)  # of CocoMetric. The last is what a run is judged by
    with_masks: bool = False
    # Of the small hybrid: steps, optimizer and its learning rate for 4 images. Others take AdamW.
    steps: int = 1000
    optimizer: Callable[[float], dict[str, Any]] = muon
    rate: float = 2e-3


def retina_head(classes: int, channels: int, strides: Sequence[int], octave: int) -> dict[str, Any]:
    """RetinaNet's head, narrower and shorter for few channels, as in the recipe for BCCD."""
    return dict(
        bbox_head=dict(
            num_classes=classes,
            in_channels=channels,
            feat_channels=channels,
            stacked_convs=4 if channels >= WIDE else 2,
            norm_cfg=dict(type='GN', num_groups=16),
            anchor_generator=dict(octave_base_scale=octave, strides=list(strides)),
        )
    )


RETINANET = Detector('RetinaNet', 'retinanet_r50_fpn.py', retina_head)


def detector_recipe(request: Request, detector: Detector = RETINANET) -> Recipe:
    """The config of a training on a folder of images with boxes, or outlines.

    Raises:
        MissingExtraError: if MMDetection is not installed.
        ConfigError: see :func:`~vit_plugin.from_folder.readers.annotated.read_annotated_folder`.
    """
    with needed_by(f'--task {request.task}'):
        import mmdet  # noqa: F401
    found = read_annotated_folder(Tree(request.data), request.skip_invalid, detector.with_masks)
    count, scratch = len(found.train), request.from_scratch
    batch_size = min(request.batch_size or 4, count)
    epochs = request.epochs or epochs_for(
        count, batch_size, detector.steps if request.is_small else 2000, 12, 72 if scratch else 36
    )
    largest = largest_image(found.relative_boxes, LARGEST) if request.is_small else LARGEST
    scale = image_scale(request, found.train, largest)
    if request.is_small:
        learning = detector.optimizer(for_batch(detector.rate, 4, batch_size)), 1.0
    elif scratch:
        learning = adamw(for_batch(5e-4, 4, batch_size)), 1.0
    else:
        learning = adamw(for_batch(1e-4, 16, batch_size), 0.1), 0.8
    sections = dict(
        classes=list(found.classes),
        model=model_of(request, found, scale, detector),
        **data_sections(
            request,
            found,
            batch_size,
            *pipelines(request, scale, epochs, detector.with_masks),
            lambda split: dataset_of(request, found, split),
            lambda split: metric_of(request, split, detector),
        ),
        **training_sections(
            *learning,
            12,
            epochs,
            batch_size,
            f'coco/{detector.metrics[-1]}_mAP',
            request.patience,
            len(found.val) / count,
        ),
    )
    files = {f'{split}.json': found.as_coco(part) for split, part in found.parts.items() if part}
    text = summary(request, found, HELD_OUT, epochs, batch_size, scale)
    bases = [f'mmdet::_base_/models/{detector.base}', base_of('_base_/mmdet_runtime.py')]
    return Recipe(f'{text} The model is a {detector.name}.', sections, bases, found, files)


def model_of(
    request: Request, found: Listing, scale: tuple[int, int], detector: Detector
) -> dict[str, Any]:
    """The backbone with its own pyramid if it is a hybrid, else ViTDet's; anchors by box sizes."""
    img_size = tuple(rounded_up(side, 32) for side in reversed(scale))
    named = request.arch.startswith('timm://')
    arguments = {
        **request.backbone(min(scale)),
        'img_size': img_size,
        **({} if named else dict(with_cls_token=False)),
    }
    built = request.meta_backbone(min(scale), **{**arguments, 'out_type': 'pyramid'})
    if not named and max(img_size) > LARGE_GRID * built.patch_embed.stride:
        blocks = tuple(sorted({built.num_layers * part // 4 - 1 for part in range(1, 5)} - {-1}))
        arguments['encoder'] = dict(window=dict(size=WINDOW, global_blocks=blocks))
    if not request.from_scratch:
        arguments['init_cfg'] = dict(type='Pretrained', checkpoint=request.weights)
    channels = WIDE if built.embed_dims >= 384 else NARROW
    octave, levels = anchors(found.relative_boxes, max(scale))
    out_type, neck, strides = pyramid_of(built, channels, levels)
    backbone = dict(
        _delete_=True, type='vit_plugin.VisionTransformer', **{**arguments, 'out_type': out_type}
    )
    heads = detector.heads(len(found.classes), channels, strides, octave)
    return dict(data_preprocessor=request.normalization, backbone=backbone, neck=neck, **heads)


def pyramid_of(
    backbone: VisionTransformer, channels: int, levels: int
) -> tuple[str, dict[str, Any], list[int]]:
    """The ``out_type``, the neck after it, and the strides of its maps."""
    strides = [stride for stride in backbone.strides if stride >= FINEST]
    if len(strides) > 1 and all(larger == 2 * stride for stride, larger in pairwise(strides)):
        neck = dict(
            in_channels=list(backbone.channels),
            out_channels=channels,
            num_outs=levels,
            start_level=len(backbone.strides) - len(strides),
            norm_cfg=dict(type='GN', num_groups=16),
        )
        return 'pyramid', neck, [strides[0] * 2**i for i in range(levels)]
    finest = 2.0 ** round(math.log2(backbone.patch_embed.stride / FINEST))
    neck = dict(
        _delete_=True,
        type='vit_plugin.SimpleFPN',
        in_channels=backbone.embed_dims,
        out_channels=channels,
        num_outs=levels,
        scales=[finest / 2**i for i in range(min(levels, 4))],
        add_extra_convs=True,
    )
    return (
        'featmap',
        neck,
        [round(backbone.patch_embed.stride / finest) * 2**i for i in range(levels)],
    )


def pipelines(
    request: Request, scale: tuple[int, int], epochs: int, with_masks: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps for an image in training, and in a test."""
    boxes = dict(
        type='LoadAnnotations', with_bbox=True, **(dict(with_mask=True) if with_masks else {})
    )
    resize = dict(type='Resize', scale=scale, keep_ratio=True)
    jitter = [
        dict(type='RandomResize', scale=scale, ratio_range=JITTER, keep_ratio=True),
        dict(type='RandomCrop', crop_size=scale, allow_negative_crop=True),
    ]
    train: list[dict[str, Any]] = [
        dict(type='vit_plugin.LoadImage'),
        boxes,
        *(jitter if epochs >= OFTEN else [resize]),
        *([] if request.no_flip else [dict(type='RandomFlip', prob=0.5)]),
        dict(type='PackDetInputs'),
    ]
    test: list[dict[str, Any]] = [
        # After the resize: boxes are compared in the file's pixels.
        dict(type='LoadImageFromFile'),
        resize,
        boxes,
        dict(
            type='PackDetInputs',
            meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
        ),
    ]
    return train, test


def list_of(request: Request, split: Split) -> str:
    """The file of COCO with the images and boxes of a part."""
    return str(Path(request.absolute_work_dir, f'{split}.json'))


def metric_of(request: Request, split: Split, detector: Detector) -> dict[str, Any]:
    """COCO's average precision."""
    return dict(type='CocoMetric', ann_file=list_of(request, split), metric=list(detector.metrics))


def dataset_of(request: Request, found: Listing, split: Split) -> dict[str, Any]:
    """MMDetection's data set of a part."""
    dataset = dict(
        type='CocoDataset', ann_file=list_of(request, split), data_prefix=dict(img=str(found.root))
    )
    if split == 'train':
        dataset['filter_cfg'] = dict(filter_empty_gt=False)
    return dataset
