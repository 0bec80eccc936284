"""Recipe of a detector for a folder of images with boxes, or with polygons of objects."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from mmengine.config import Config

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.listing import Listing
from anyfolder.readers.splits import Split
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.mixing import Mixing, mixing_of
from vit_plugin.from_folder.model_recipe import REPORT_HOOKS, ModelRecipe
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.starting_point import LARGE_SIDE, SMALL_SIDE
from vit_plugin.from_folder.task_recipe import Pipeline, rounded_up

from .object_sizes import anchors, largest_image
from .seen_images import TiledImages, WholeImages

MAX_DETECTION_SIDE = 1024  # pixels of the longer side
# Range of random scaling if images are seen so often that the model would overfit.
RESIZE_RATIOS, OFTEN = (0.8, 1.25), 20


class DetectionRecipe(ModelRecipe):
    """Recipe of a training on images with boxes, or with polygons.

    Attributes:
        metrics: metrics of ``CocoMetric``. The last one judges a run.
        with_masks: whether each object has a polygon.
    """

    packages: Sequence[str] = ('mmdet', 'vit_plugin.detection')
    small_rows = (SMALL_SIDE, LARGE_SIDE)
    runtime = '_base_/mmdet_runtime.py'
    changes: ClassVar = dict(fine_tuned=dict(weight_decay=0.1))
    offered = (
        '--arch tf_efficientnet_lite0+Ti/16 --weights timm://tf_efficientnet_lite0.in1k '
        '(Apache 2.0)'
    )
    metrics: tuple[str, ...] = ('bbox',)
    pixels_of_bands: ClassVar = dict(type='vit_plugin.BandsPreprocessor', bgr_to_rgb=False)
    with_masks = False

    def __init__(self, request: Request, decode_all: bool = False) -> None:
        self.images = TiledImages if request.tiles else WholeImages
        self.packages = (*self.packages, *self.images.packages)
        super().__init__(request, decode_all)

    @property
    def monitor(self) -> str:
        """COCO's average precision."""
        return f'coco/{self.metrics[-1]}_mAP'

    @cached_property
    def listing(self) -> Listing:
        """See :func:`~anyfolder.readers.box_folders.read_annotated_folder`."""
        tree = self.tree()
        if found := self.by_layout(tree):
            listing = found[0]
        else:
            listing = read_annotated_folder(tree, self.request.skip_invalid, self.with_masks)
        if self.with_masks:
            self.images.check_masks(listing)
        return listing

    @cached_property
    def seen(self) -> WholeImages:
        """What training uses of the images: whole images or tiles."""
        return self.images(self.listing, self.request.tiles or 0)

    def passes(self, split: Split) -> int:
        return self.seen.passes(split)

    @property
    def more(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Sections that the model, mixed images and tiles add."""
        more = super().more
        if self.mixing:
            more = {
                **more,
                'custom_hooks': [*more.get('custom_hooks', REPORT_HOOKS), *self.mixing.hooks],
            }
        return {**more, **self.seen.loops}

    def summary(self) -> str:
        """The images, the length of the training, the model and its tiles."""
        mixed = self.mixing.summary if self.mixing else ''
        has_anchors = bool(self.row.base and not self.start.detector)
        return super().summary() + mixed + self.seen.summary(has_anchors)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized, or to which they are stretched."""
        if saved := self.start.detector:
            side = self.request.img_size
            return (side, side) if side else tuple(resize_of(saved)['scale'])
        if own := self.row.side or self.seen.side:
            side = self.request.img_size or own
            return side, side
        small, boxes = self.start.is_small, self.listing.relative_boxes
        width, height = self.image_scale(
            largest_image(boxes, MAX_DETECTION_SIDE) if small else MAX_DETECTION_SIDE
        )
        if self.row.stretched:
            return rounded_up(width, 32), rounded_up(height, 32)
        return width, height

    @property
    def padding(self) -> Section:
        """Masks are padded, too."""
        return dict(pad_mask=self.with_masks)

    def new_model(self) -> Section:
        """The row's model for these images, with the facts of their objects."""
        listing, (width, height) = self.listing, self.size
        anchor, levels = anchors(self.seen.relative_boxes, max(self.size))
        facts = self.facts(
            (rounded_up(height, 32), rounded_up(width, 32)),
            windows=True,
            objects=self.seen.most_objects,
            anchor=anchor,
            levels=levels,
            stuff=listing.stuff,
        )
        pixels = self.start.normalization
        if not self.row.base:
            pixels |= dict(
                type='DetDataPreprocessor', bgr_to_rgb=True, pad_size_divisor=32, **self.padding
            )
        return self.built(facts, pixels)

    @cached_property
    def resize(self) -> Section:
        """The step that gives an image its size."""
        saved = self.start.detector
        stretched = self.row.stretched if saved is None else not resize_of(saved)['keep_ratio']
        return dict(type='Resize', scale=self.size, keep_ratio=not stretched)

    @property
    def resizing(self) -> Pipeline:
        """The same in training, with a random crop or scale if images are seen often."""
        if self.epochs < OFTEN:
            return [self.resize]
        if not self.resize['keep_ratio']:
            part = dict(crop_type='relative_range', crop_size=(0.7, 0.7), allow_negative_crop=True)
            return [dict(type='RandomCrop', **part), self.resize]
        return [
            dict(type='RandomResize', scale=self.size, ratio_range=RESIZE_RATIOS, keep_ratio=True),
            dict(type='RandomCrop', crop_size=self.size, allow_negative_crop=True),
        ]

    @property
    def ending(self) -> Pipeline:
        """The last steps in training."""
        return [*self.flip(), dict(type='PackDetInputs')]

    @cached_property
    def mixing(self) -> Mixing | None:  # type: ignore[override]
        """How several images are mixed, if they are.

        Raises:
            ConfigError: if the images are multispectral.
        """
        name, bands = self.request.augment, self.listing.bands
        if not name:
            return None
        if bands:
            raise ConfigError(
                f'--augment {name} mixes photographs, and these images have {bands} bands; leave '
                'it out.'
            )
        return mixing_of(name, self.epochs, self.size, self.resizing, self.ending)

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The steps for an image in training, and in a test."""
        boxes = dict(type='LoadAnnotations', with_bbox=True)
        if self.with_masks:
            boxes['with_mask'] = True
        train: Pipeline = [
            dict(type='vit_plugin.LoadImage'),
            *self.seen.steps,
            boxes,
            *self.resizing,
            *self.ending,
        ]
        test: Pipeline = [
            dict(type='LoadImageFromFile'),
            self.resize,
            boxes,  # after the resize: boxes are compared at the resolution of the file
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

    def dataset(self, split: Split) -> Section:
        """MMDetection's data set. Images without boxes are trained on, too."""
        dataset: Section = dict(
            type='CocoDataset',
            ann_file=self.list_path(self.list_name(split)),
            data_prefix=dict(img=str(self.listing.root)),
        )
        if split == 'train':
            dataset |= dict(filter_cfg=dict(filter_empty_gt=False), **self.seen.dataset)
        return dataset

    def metric(self, split: Split) -> Section:
        """COCO's average precision."""
        ann_file = self.list_path(self.list_name(split))
        return dict(type='CocoMetric', ann_file=ann_file, metric=list(self.metrics))


def resize_of(saved: Config) -> Section:
    """The step of a config's test that resizes an image."""
    steps = saved.test_dataloader.dataset.pipeline
    return next(step for step in steps if step['type'] == 'Resize')
