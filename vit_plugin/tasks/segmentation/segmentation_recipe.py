"""Recipe of a segmentor for a folder of images and masks."""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar

from PIL import Image

from anyfolder.readers.drawn_masks import class_map
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_folders import read_mask_folder
from anyfolder.readers.records import ImageRecord
from anyfolder.readers.splits import Split
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.config import data_workers
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import rounded_up
from vit_plugin.from_folder.image_scale import image_scale
from vit_plugin.from_folder.map_recipe import MapRecipe
from vit_plugin.from_folder.task_recipe import flip_steps

MAX_MAP_SIDE = 512  # pixels of the longer side
MASK_FOLDER = 'masks'  # folder for class maps in the work directory


class SegmentationRecipe(MapRecipe):
    """Recipe for images and masks."""

    # Overrides attributes of TaskRecipe, which describes them.
    monitor = 'mIoU'
    checkpoint_hook: ClassVar = dict(save_best='mIoU', rule='greater')

    def read(self, tree: Tree) -> Listing:
        return read_mask_folder(tree, self.request.skip_invalid)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized.

        For a complete model, those of its windows in sliding-window inference.

        Raises:
            ConfigError: for an image size other than the model's.
        """
        if saved := self.start.continued:
            if self.request.img_size:
                raise ConfigError(
                    '--img-size: a complete model keeps the size of its weights; leave it out.'
                )
            side = saved.img_size
            whole = (side, side) if isinstance(side, int) else side
            test_cfg = saved.cfg.model.get('test_cfg') or {}
            return tuple(test_cfg.get('crop_size') or whole)[::-1]
        return image_scale(self.listing, MAX_MAP_SIDE, self.request.img_size)

    @property
    def scale(self) -> tuple[int, int]:
        """The width and height within which images are resized.

        For a complete model, only the shorter side is limited, so that windows fit into images.
        """
        if not self.start.continued:
            return self.size
        shorter = min(self.size)
        return 16 * shorter, shorter  # the longer side is only limited in very thin images

    @property
    def crop_size(self) -> tuple[int, int]:
        """Height and width of an image in training, as multiples of 32."""
        width, height = self.size
        return rounded_up(height, 32), rounded_up(width, 32)

    @property
    def padding(self) -> Section:
        """Padding to one size in training. It has no class."""
        return dict(size=self.crop_size, seg_pad_val=255)

    def new_model(self) -> Section:
        """The section ``model`` of a new model for these images."""
        facts = self.facts(self.crop_size, objects=len(self.listing.classes))
        return self.segmentor('EncoderDecoder', facts)

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms of an image in training, and in a test."""
        scale = self.scale
        resize = dict(type='RandomResize', scale=scale, ratio_range=(0.75, 1.5), keep_ratio=True)
        train: Pipeline = [
            dict(type='vit_plugin.LoadImage'),
            dict(type='LoadAnnotations'),
            resize,
            dict(type='RandomCrop', crop_size=self.crop_size, cat_max_ratio=0.9),
            *flip_steps(self.request),
            dict(type='PackSegInputs'),
        ]
        test: Pipeline = [
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=scale, keep_ratio=True),
            # Load masks after the resize: maps are compared at the resolution of the file.
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ]
        return train, test

    def dataset(self, split: Split) -> Section:
        """MMSegmentation's data set, with the masks that :func:`write_masks` writes."""
        return dict(
            type='BaseSegDataset',
            ann_file=self.list_path(split),
            img_suffix='',
            seg_map_suffix='.png',
            reduce_zero_label=False,
            data_prefix=dict(
                img_path=str(self.listing.root), seg_map_path=self.request.path_of(MASK_FOLDER)
            ),
        )

    def write_maps(self, folder: Path) -> None:
        """Write the masks, see :func:`write_masks`."""
        write_masks(self.listing, folder)

    def metric(self, split: Split) -> Section:
        """The mean intersection over union."""
        return dict(type='IoUMetric', iou_metrics=['mIoU'])


def write_masks(listing: Listing, folder: Path) -> None:
    """Write the class of each pixel of all images, ``folder/masks/IMAGE.png``."""

    def write(record: ImageRecord) -> None:
        target = folder / MASK_FOLDER / f'{listing.name_of(record)}.png'
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(class_map(listing, record)).save(target, compress_level=1)

    with ThreadPoolExecutor(data_workers()) as pool:
        for _ in pool.map(write, chain(*listing.parts.values())):
            pass
