"""A RetinaNet (arXiv:1708.02002) for a folder of images with boxes."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from mmengine.config import Config

from vit_plugin.models import VisionTransformer

from .object_sizes import FINEST, anchors, largest_image
from .readers.annotated import read_annotated_folder
from .readers.listing import Listing
from .readers.splits import Split
from .schedule import Schedule, muon
from .starting_point import LARGE, SMALL
from .task import Pipeline, Task, counted, rounded_up

LARGEST = 1024  # pixels of the longer side
LARGE_GRID = 32  # patches along a side, from which on blocks attend within windows
WINDOW = 14  # patches along a side
WIDE, NARROW = 256, 96  # channels of the maps: RetinaNet's, and those of the recipe for BCCD
# Of the scale, where an image is seen so often that it is learned by heart otherwise.
JITTER, OFTEN = (0.8, 1.25), 20


class Detector(NamedTuple):
    """A kind of detector.

    Attributes:
        name: in words.
        base: its config in MMDetection.
        heads: classes, channels, strides, smallest anchor in strides -> entries of ``model``.
        schedules: see :class:`Task`.
    """

    name: str
    base: str
    heads: Callable[[int, int, Sequence[int], int], dict[str, Any]]
    schedules: dict[str, Schedule]


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


RETINANET = Detector(
    'RetinaNet',
    'retinanet_r50_fpn.py',
    retina_head,
    dict(
        small=Schedule(1000, (12, 72), (4, 4), 2e-3, 4, 12, optimizer=muon),
        scratch=Schedule(2000, (12, 72), (4, 4), 5e-4, 4, 12),
        fine_tuned=Schedule(
            2000, (12, 36), (4, 4), 1e-4, 16, 12, weight_decay=0.1, layer_decay=0.8
        ),
    ),
)


# A detector that was trained, for other images: LW-DETR's rates, and fewer steps than RetinaNet's.
CONTINUED = Schedule(1000, (6, 36), (4, 4), 1e-4, 16, 12, weight_decay=1e-4, layer_decay=0.8)


class Detection(Task):
    """A training on images with boxes, or with polygons.

    Attributes:
        detector: the model.
        metrics: of ``CocoMetric``. The last one is what a run is judged by.
        with_masks: whether each object has a polygon.
    """

    packages = ('mmdet', 'vit_plugin.detection')
    small_rows = (SMALL, LARGE)
    takes_detectors = True
    detector: ClassVar[Detector] = RETINANET
    metrics: tuple[str, ...] = ('bbox',)
    with_masks = False

    @property
    def schedules(self) -> Mapping[str, Schedule]:  # type: ignore[override]
        """Those of the detector."""
        return dict(fine_tuned=CONTINUED) if self.start.detector else self.detector.schedules

    @property
    def loads_model(self) -> bool:  # type: ignore[override]
        """True if the weights are of a complete detector."""
        return self.start.detector is not None

    @property
    def bases(self) -> Sequence[str]:
        """The detector's config in MMDetection, and the runtime."""
        runtime = '_base_/mmdet_runtime.py'
        if self.start.detector:
            return (runtime,)
        return f'mmdet::_base_/models/{self.detector.base}', runtime

    @property
    def monitor(self) -> str:
        """COCO's average precision."""
        return f'coco/{self.metrics[-1]}_mAP'

    @cached_property
    def listing(self) -> Listing:
        """See :func:`~vit_plugin.from_folder.readers.annotated.read_annotated_folder`."""
        request = self.request
        return read_annotated_folder(self.tree(), request.skip_invalid, self.with_masks)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized, or to which they are stretched."""
        if saved := self.start.detector:
            steps = saved.test_dataloader.dataset.pipeline
            scales = [step['scale'] for step in steps if step['type'] == 'Resize']
            side = self.request.img_size
            return (side, side) if side else tuple(scales[0])
        small, boxes = self.start.is_small, self.listing.relative_boxes
        return self.image_scale(largest_image(boxes, LARGEST) if small else LARGEST)

    def summary(self) -> str:
        """The images, the length of the training and the model."""
        if saved := self.start.detector:
            new = saved.classes != list(self.listing.classes)
            return f'{super().summary()} The model is the detector of {self.start.weights}' + (
                f', with {counted(len(self.listing.classes), "new class")}: the layers of its '
                'classes start untrained, and all else is kept.'
                if new
                else ' with its classes, and all of it is kept.'
            )
        return f'{super().summary()} The model is a {self.detector.name}.'

    def continued(self, saved: Config) -> dict[str, Any]:
        """The model of a detector's config, with a head for the data's classes."""
        model = saved.model.to_dict()
        if saved.classes != list(self.listing.classes):
            model['bbox_head']['num_classes'] = len(self.listing.classes)
            model['bbox_head'].pop('unused_rows', None)
        return model

    def model(self) -> dict[str, Any]:
        """The backbone with its own pyramid if it is a hybrid, else ViTDet's; anchors by boxes."""
        start, listing, scale = self.start, self.listing, self.size
        if start.detector:
            return self.continued(start.detector)
        img_size = tuple(rounded_up(side, 32) for side in reversed(scale))
        named = start.arch.startswith('timm://')
        arguments = {
            **start.backbone(min(scale)),
            'img_size': img_size,
            **({} if named else dict(with_cls_token=False)),
        }
        built = start.meta_backbone(min(scale), **{**arguments, 'out_type': 'pyramid'})
        if not named and max(img_size) > LARGE_GRID * built.patch_embed.stride:
            ends = {built.num_layers * part // 4 - 1 for part in range(1, 5)}
            blocks = tuple(sorted(ends - {-1}))
            arguments['encoder'] = dict(window=dict(size=WINDOW, global_blocks=blocks))
        if not start.from_scratch:
            arguments['init_cfg'] = dict(type='Pretrained', checkpoint=start.weights)
        channels = WIDE if built.embed_dims >= 384 else NARROW
        octave, levels = anchors(listing.relative_boxes, max(scale))
        out_type, neck, strides = pyramid_of(built, channels, levels)
        backbone = dict(
            _delete_=True,
            type='vit_plugin.VisionTransformer',
            **{**arguments, 'out_type': out_type},
        )
        heads = self.detector.heads(len(listing.classes), channels, strides, octave)
        return dict(data_preprocessor=start.normalization, backbone=backbone, neck=neck, **heads)

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The steps for an image in training, and in a test."""
        scale = self.size
        boxes = dict(type='LoadAnnotations', with_bbox=True)
        if self.with_masks:
            boxes['with_mask'] = True
        stretched = self.start.detector is not None
        resize = dict(type='Resize', scale=scale, keep_ratio=not stretched)
        jitter = [
            dict(type='RandomResize', scale=scale, ratio_range=JITTER, keep_ratio=True),
            dict(type='RandomCrop', crop_size=scale, allow_negative_crop=True),
        ]
        if stretched:
            part = dict(crop_type='relative_range', crop_size=(0.7, 0.7), allow_negative_crop=True)
            jitter = [dict(type='RandomCrop', **part), resize]
        train: Pipeline = [
            dict(type='vit_plugin.LoadImage'),
            boxes,
            *(jitter if self.epochs >= OFTEN else [resize]),
            *self.flip(),
            dict(type='PackDetInputs'),
        ]
        test: Pipeline = [
            dict(type='LoadImageFromFile'),
            resize,
            boxes,  # after the resize: boxes are compared in the file's pixels
            dict(
                type='PackDetInputs',
                meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
            ),
        ]
        return train, test

    def list_name(self, split: Split) -> str:
        """A file of COCO."""
        return f'{split}.json'

    def list_of(self, split: Split) -> str:
        """The images and boxes of a split."""
        return self.listing.as_coco(self.listing.parts[split])

    def dataset(self, split: Split) -> dict[str, Any]:
        """MMDetection's data set. Images without boxes are trained on, too."""
        dataset = dict(
            type='CocoDataset',
            ann_file=self.list_path(self.list_name(split)),
            data_prefix=dict(img=str(self.listing.root)),
        )
        if split == 'train':
            dataset['filter_cfg'] = dict(filter_empty_gt=False)
        return dataset

    def metric(self, split: Split) -> dict[str, Any]:
        """COCO's average precision."""
        ann_file = self.list_path(self.list_name(split))
        return dict(type='CocoMetric', ann_file=ann_file, metric=list(self.metrics))


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
