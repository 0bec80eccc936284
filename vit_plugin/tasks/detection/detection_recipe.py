"""Recipe of a detector for a folder of images with boxes, or with polygons of objects."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from mmengine.config import Config

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.splits import Split
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import rounded_up
from vit_plugin.from_folder.image_scale import image_scale
from vit_plugin.from_folder.mixing import Mixing, plan_mixing
from vit_plugin.from_folder.model_recipe import ModelRecipe
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.small_hybrids import LARGE_SIDE, SMALL_SIDE
from vit_plugin.from_folder.task_recipe import flip_steps

from .object_sizes import choose_anchors, choose_image_side
from .seen_images import TiledImages, WholeImages

MAX_DETECTION_SIDE = 1024  # pixels of the longer side
# With fewer epochs, images are not cropped or scaled at random. With more, the model would overfit.
MIN_EPOCHS_TO_CROP = 20
RESIZE_RATIOS = (0.8, 1.25)  # range of the random scaling


class DetectionRecipe(ModelRecipe):
    """Recipe of a training on images with boxes, or with polygons.

    Attributes:
        metrics: metrics of ``CocoMetric``.
        with_masks: whether each object has a polygon.
    """

    # Overrides attributes of ModelRecipe and TaskRecipe, which describe them.
    packages: Sequence[str] = ('mmdet', 'vit_plugin.detection')
    hybrid_range = (SMALL_SIDE, LARGE_SIDE)
    runtime = '_base_/mmdet_runtime.py'
    schedule_overrides: ClassVar = dict(fine_tuned=dict(weight_decay=0.1))
    list_suffix = '.json'
    monitor = 'coco/bbox_mAP'
    metrics: tuple[str, ...] = ('bbox',)
    multispectral_preprocessor: ClassVar = dict(
        type='vit_plugin.BandsPreprocessor', bgr_to_rgb=False
    )
    with_masks = False

    def __init__(self, request: Request, decode_all: bool = False) -> None:
        self.training_images_class = TiledImages if request.tiles else WholeImages
        self.packages = (*self.packages, *self.training_images_class.packages)
        super().__init__(request, decode_all)

    def read(self, tree: Tree) -> Listing:
        return read_annotated_folder(tree, self.request.skip_invalid, self.with_masks)

    def check(self, listing: Listing) -> None:
        if self.with_masks:
            self.training_images_class.check_masks(listing)

    @cached_property
    def training_images(self) -> WholeImages:
        """The training images: as a whole, or as tiles."""
        return self.training_images_class(self.listing, self.request.tiles or 0)

    def images_per_pass(self, split: Split) -> int:
        return self.training_images.images_per_pass(split)

    @property
    def task_sections(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Sections that tiles add."""
        return self.training_images.loops

    def summary(self) -> str:
        """The images, the length of the training, the model and its tiles."""
        mixed = self.mixing.summary if self.mixing else ''
        # The models with a base config are those with anchors.
        has_anchors = bool(self.task_model.base and not self.start.continued)
        return super().summary() + mixed + self.training_images.summary(has_anchors)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized, or to which they are stretched."""
        if saved := self.start.continued:
            side = self.request.img_size
            return (side, side) if side else find_resize(saved.cfg)['scale']
        if default := self.task_model.side or self.training_images.side:
            side = self.request.img_size or default
            return side, side
        small, boxes = self.start.is_small, self.listing.relative_boxes
        largest = choose_image_side(boxes, MAX_DETECTION_SIDE) if small else MAX_DETECTION_SIDE
        width, height = image_scale(self.listing, largest, self.request.img_size)
        if self.task_model.stretched:
            return rounded_up(width, 32), rounded_up(height, 32)
        return width, height

    @property
    def padding(self) -> Section:
        """Masks are padded, too."""
        return dict(pad_mask=self.with_masks)

    def new_model(self) -> Section:
        """The section ``model`` of a new model for these images and their objects."""
        listing, (width, height) = self.listing, self.size
        anchor, levels = choose_anchors(self.training_images.relative_boxes, max(self.size))
        facts = self.facts(
            (rounded_up(height, 32), rounded_up(width, 32)),
            windows=True,
            objects=self.training_images.most_objects,
            anchor=anchor,
            levels=levels,
            stuff=listing.stuff,
        )
        preprocessor = self.start.normalization
        if not self.task_model.base:
            preprocessor |= dict(
                type='DetDataPreprocessor', bgr_to_rgb=True, pad_size_divisor=32, **self.padding
            )
        return self.complete_model(facts, preprocessor)

    @cached_property
    def resize(self) -> Section:
        """The step that gives an image its size."""
        saved = self.start.continued
        stretched = (
            self.task_model.stretched if saved is None else not find_resize(saved.cfg)['keep_ratio']
        )
        return dict(type='Resize', scale=self.size, keep_ratio=not stretched)

    def last_steps(self) -> tuple[Pipeline, Pipeline]:
        """The last transforms in training: the resize, and what follows it."""
        return resizing_steps(self.resize, self.epochs), [
            *flip_steps(self.request),
            dict(type='PackDetInputs'),
        ]

    @cached_property
    def mixing(self) -> Mixing | None:  # type: ignore[override]
        """How several images are mixed, or None without ``--augment``.

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
        return plan_mixing(name, self.epochs, self.size, *self.last_steps())

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms of an image in training, and in a test."""
        boxes = dict(type='LoadAnnotations', with_bbox=True)
        if self.with_masks:
            boxes['with_mask'] = True
        train: Pipeline = [
            dict(type='vit_plugin.LoadImage'),
            *self.training_images.steps,
            boxes,
            *chain(*self.last_steps()),
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

    def list_of(self, split: Split) -> str:
        """The images and boxes of a split."""
        return self.listing.as_coco(self.listing.parts[split])

    def dataset(self, split: Split) -> Section:
        """MMDetection's data set. Images without boxes are trained on, too."""
        dataset: Section = dict(
            type='CocoDataset',
            ann_file=self.list_path(split),
            data_prefix=dict(img=str(self.listing.root)),
        )
        if split == 'train':
            dataset |= dict(filter_cfg=dict(filter_empty_gt=False), **self.training_images.dataset)
        return dataset

    def metric(self, split: Split) -> Section:
        """COCO's average precision."""
        ann_file = self.list_path(split)
        return dict(type='CocoMetric', ann_file=ann_file, metric=list(self.metrics))


def resizing_steps(resize: Section, epochs: int) -> Pipeline:
    """The resize in training. In a run of many epochs it has a random scale or crop."""
    if epochs < MIN_EPOCHS_TO_CROP:
        return [resize]
    if not resize['keep_ratio']:
        crop = dict(crop_type='relative_range', crop_size=(0.7, 0.7), allow_negative_crop=True)
        return [dict(type='RandomCrop', **crop), resize]
    scale = resize['scale']
    return [
        dict(type='RandomResize', scale=scale, ratio_range=RESIZE_RATIOS, keep_ratio=True),
        dict(type='RandomCrop', crop_size=scale, allow_negative_crop=True),
    ]


def find_resize(saved: Config) -> Section:
    """The scale and ``keep_ratio`` of the step of a config's test pipeline that resizes an image.

    Raises:
        ConfigError: if no step has a scale.
    """
    loader = saved.get('test_dataloader') or {}
    for step in (loader.get('dataset') or {}).get('pipeline') or ():
        if step['type'].rpartition('.')[2] == 'Resize' and (scale := step.get('scale')):
            # The defaults are MMCV's.
            scale = (scale, scale) if isinstance(scale, int) else tuple(scale)
            return dict(scale=scale, keep_ratio=step.get('keep_ratio', False))
    raise ConfigError(
        '--weights: the test pipeline in the config of the weights has no Resize with a scale; '
        'give --arch to take the backbone alone.'
    )
