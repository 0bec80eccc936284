"""What a detector is trained on: whole images, or tiles.

Everything that ``--tiles`` changes in a recipe is here.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import prod
from typing import ClassVar

import numpy as np

from anyfolder.readers.listing import Listing
from anyfolder.readers.splits import Split
from anyfolder.wording import counted
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.errors import ConfigError
from vit_plugin.files.tiles import MIN_VISIBLE_SHARE, VISIBLE_PIXELS, View, choose_views, cut_tiles

MASK_BYTES = 8 << 30  # limit of the masks of an image in bytes


class WholeImages:
    """Training on whole images.

    Args:
        listing: the data.
        side: side of a tile in pixels; 0 without tiles.

    Attributes:
        packages: what must be installed.
        steps: transforms of the training pipeline between reading an image and its boxes.
    """

    packages: ClassVar[tuple[str, ...]] = ()
    steps: ClassVar[Pipeline] = []

    def __init__(self, listing: Listing, side: int = 0) -> None:
        self.listing, self.side = listing, side

    @staticmethod
    def check_masks(listing: Listing) -> None:
        """Raise a ``ConfigError`` for an image whose masks take more memory than a machine has.

        MMDetection loads them at full size, one byte per pixel and object, before it resizes them.
        """
        for record in chain(*listing.parts.values()):
            size = len(record.instances) * prod(record.size)
            if size > MASK_BYTES:
                width, height = record.size
                raise ConfigError(
                    f'{record.path} has {len(record.instances):,} objects, whose masks of '
                    f'{width} x {height} pixels take {size / 2**30:,.0f} GiB; give --tiles, such '
                    'as --tiles 1024, which cuts them, or smaller images.'
                )

    @property
    def relative_boxes(self) -> np.ndarray:
        """Sides (N, 2) of each object to train on, as shares of the longer side of its view.

        A view is an image or a tile.
        """
        return self.listing.relative_boxes

    @property
    def most_objects(self) -> int:
        """The largest number of objects in a view."""
        return max(len(record.instances) for record in self.listing.train)

    def images_per_pass(self, split: Split) -> int:
        """The number of images or tiles in a pass over a split."""
        return len(self.listing.parts[split])

    @property
    def dataset(self) -> Section:
        """Changes of the training data set."""
        return {}

    @property
    def loops(self) -> Mapping[str, Section]:
        """The sections of the loops of a validation and a test."""
        return {}

    def summary(self, has_anchors: bool) -> str:
        """Sentences about tiles, or ''.

        Args:
            has_anchors: whether the model has anchors. Those in an ignored object are not trained,
                while a model without anchors takes the object as background.
        """
        return ''


class TiledImages(WholeImages):
    """Training on overlapping tiles and whole images; tests use slices of the same size."""

    # Overrides attributes of WholeImages, which describes them.
    packages = ('supervision',)
    steps: ClassVar = [dict(type='vit_plugin.CutTile')]

    @staticmethod
    def check_masks(listing: Listing) -> None:
        """Accept all images, since masks are cropped before they are rasterized."""

    @cached_property
    def views(self) -> Sequence[View]:
        """The tiles to train on, and the whole images that have several.

        Raises:
            ConfigError: if no image is larger than a tile, or no view shows an object.
        """
        train = self.listing.train
        largest = max(max(record.size) for record in train)
        if self.side >= largest:
            raise ConfigError(
                f'--tiles {self.side}: the longest side of an image to train on has {largest} '
                'pixels; give a smaller tile, or leave it out.'
            )
        images = []
        for record in train:
            instances = record.instances
            # Rounded as in the list that the training reads.
            boxes = np.round([instance.box for instance in instances], 3).reshape(-1, 4)
            boxes[:, 2:] += boxes[:, :2]
            images.append((record.size, boxes, [instance.crowd for instance in instances]))
        views = choose_views(images, self.side)
        if not views:
            raise ConfigError(
                f'--tiles {self.side}: neither a tile nor a whole image within {self.side} pixels '
                'shows an object; give a larger tile, or leave it out.'
            )
        return views

    @cached_property
    def relative_boxes(self) -> np.ndarray:
        return np.concatenate(
            [
                (view.boxes[:, 2:] - view.boxes[:, :2])[~view.ignored]
                / max(np.subtract(view.area[2:], view.area[:2]))
                for view in self.views
            ]
        )

    @property
    def most_objects(self) -> int:
        return max(len(view.objects) for view in self.views)

    def images_per_pass(self, split: Split) -> int:
        if split == 'train':
            return len(self.views)
        count = 0
        for record in self.listing.parts[split]:
            tiles = len(cut_tiles(*record.size, self.side))
            count += tiles if tiles == 1 else tiles + 1  # and the whole image
        return count

    @property
    def dataset(self) -> Section:
        return dict(type='vit_plugin.TiledCocoDataset', tile=self.side)

    @property
    def loops(self) -> Mapping[str, Section]:
        return dict(
            val_cfg=dict(type='vit_plugin.SlicedValLoop', side=self.side),
            test_cfg=dict(type='vit_plugin.SlicedTestLoop', side=self.side),
        )

    def summary(self, has_anchors: bool) -> str:
        ignored = 'ignored there' if has_anchors else 'background there'
        return (
            f' An epoch has {counted(self.images_per_pass("train"), "view")}: overlapping tiles of '
            f'{self.side} x {self.side} pixels with objects, at most as many tiles without, and '
            'each image as a whole. An object of which less than '
            f'{MIN_VISIBLE_SHARE:.0%} is in a tile is {ignored}, and so is one smaller than '
            f'{VISIBLE_PIXELS} pixels in the whole image. Validation, tests and predictions use '
            'slices of that size, and the metrics are of whole images.'
        ) + self._describe_lost()

    def _describe_lost(self) -> str:
        """A sentence about objects that are in no view, if there are any."""
        seen = {
            (view.image, number)
            for view in self.views
            for number in view.objects[~view.ignored].tolist()
        }
        objects = sum(
            not instance.crowd for record in self.listing.train for instance in record.instances
        )
        lost = objects - len(seen)
        if not lost:
            return ''
        return (
            f' {counted(lost, "object")} of {objects} are learned in no view: they are larger than '
            'the overlap, and too small in the whole image; give larger tiles.'
        )
