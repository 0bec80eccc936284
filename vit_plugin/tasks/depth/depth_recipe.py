"""Recipe of a depth model for a folder of images and depth maps."""

import json
import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from anyfolder.readers.depth_folders import DepthRange, read_depth_folder
from anyfolder.readers.listing import Listing
from anyfolder.readers.splits import Split
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import rounded_up
from vit_plugin.from_folder.image_scale import image_scale
from vit_plugin.from_folder.map_recipe import MapRecipe
from vit_plugin.from_folder.schedule import muon
from vit_plugin.from_folder.task_recipe import flip_steps, read_by_layout

MAX_DEPTH_SIDE = 512  # pixels of the longer side


class DepthRecipe(MapRecipe):
    """Recipe for images and depth maps in meters."""

    # Overrides attributes of TaskRecipe, which describes them.
    schedule_overrides: ClassVar = dict(
        small=dict(rate=4e-3, optimizer=muon), **MapRecipe.schedule_overrides
    )
    continued_tasks = ('depth',)
    monitor = 'delta1'
    list_suffix = '.json'
    checkpoint_hook: ClassVar = dict(save_best='delta1', rule='greater')

    @cached_property
    def data_and_range(self) -> tuple[Listing, DepthRange]:
        """The data, and the range of its depths, read at the first access."""
        request, tree = self.request, self.tree()
        scale = request.options.get('depth_scale')
        if data_and_range := read_by_layout(tree, request, depth_scale=scale):
            listing, depths = data_and_range
            assert depths
            return listing, depths
        return read_depth_folder(tree, scale, request.skip_invalid, self.probes.decode_all)

    @property
    def listing(self) -> Listing:
        return self.data_and_range[0]

    @property
    def head(self) -> Mapping[str, Any]:
        """The head of a continued model, as a section; {} for a new model."""
        return self.start.continued.cfg.model.decode_head if self.start.continued else {}

    @cached_property
    def farthest(self) -> float:
        """The largest depth in meters that is trained on: the data's, rounded up to two digits.

        For a continued model, it is at most the largest depth that the model predicts.

        Raises:
            ConfigError: if half of the pixels are farther than a complete model can predict.
        """
        depths, max_depth = self.data_and_range[1], self.head.get('max_depth') or math.inf
        if depths.median > max_depth:
            raise ConfigError(
                f'--weights: the model predicts up to {max_depth:g} m, and half of the pixels are '
                f'farther than {depths.median:.4g} m; give another one, --depth-scale, or --arch '
                'to take its backbone alone.'
            )
        second_digit = 10.0 ** (math.floor(math.log10(depths.farthest)) - 1)
        rounded = math.ceil(depths.farthest / second_digit) * second_digit
        return min(float(f'{rounded:.2g}'), max_depth)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized, at most a complete model's."""
        start = self.start
        largest = np.max(start.continued.img_size) if start.continued else MAX_DEPTH_SIDE
        return image_scale(self.listing, largest, self.request.img_size)

    @cached_property
    def padding(self) -> Section:
        """Padding of unknown depth: to one size in training, to multiples of a stride in a test."""
        arguments = self.backbone_arguments(self.start.from_scratch, out_type='pyramid')
        stride = self.start.build_meta_backbone(min(self.size), **arguments).strides[-1]
        width, height = (rounded_up(side, stride) for side in self.size)
        return dict(size=(height, width), seg_pad_val=0, test_cfg=dict(size_divisor=stride))

    def new_model(self) -> Section:
        """The section ``model`` of a new model for these images."""
        task_facts = dict(farthest=self.farthest)  # meters
        facts = self.facts(self.padding['size'], self.start.from_scratch, task_facts=task_facts)
        return self.segmentor('DepthEstimator', facts)

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms of an image in training, and in a test.

        Images are not rescaled at random: objects would look nearer at the same depth.
        """
        resize = dict(type='Resize', scale=self.size, keep_ratio=True)
        limits = dict(scale=self.data_and_range[1].scale, max_depth=self.farthest)
        load_depth = dict(type='vit_plugin.LoadDepthAnnotations', **limits)
        pack = dict(type='PackSegInputs')
        train: Pipeline = [
            dict(type='vit_plugin.LoadImage'),
            load_depth,
            resize,
            dict(type='RandomCrop', crop_size=self.size[::-1]),  # images of other shapes are larger
            *flip_steps(self.request),
            dict(type='PhotoMetricDistortion'),
            pack,
        ]
        # Depth is loaded after the resize: maps are compared at the resolution of the file.
        return train, [dict(type='LoadImageFromFile'), resize, load_depth, pack]

    def list_of(self, split: Split) -> str:
        """The images and their maps, as MMEngine's JSON."""
        root = self.listing.root
        rows = [
            dict(
                img_path=self.listing.name_of(record),
                depth_map_path=os.path.relpath(record.mask or '', root).replace(os.sep, '/'),
            )
            for record in self.listing.parts[split]
        ]
        return json.dumps(dict(metainfo={}, data_list=rows))

    def dataset(self, split: Split) -> Section:
        """The data set that reads :meth:`list_of`."""
        root = str(self.listing.root)
        return dict(
            type='vit_plugin.DepthMaps',
            ann_file=self.list_path(split),
            data_prefix=dict(img_path=root, depth_map_path=root),
        )

    def metric(self, split: Split) -> Section:
        """AbsRel, RMSE and the shares within a ratio."""
        mode = self.head.get('target', 'depth')
        return dict(type='vit_plugin.DepthMetric', max_depth_eval=self.farthest, mode=mode)

    def summary(self) -> str:
        depths = self.data_and_range[1]
        text = (
            f'{super().summary()} Depth from {depths.nearest:.2f} to {depths.farthest:.2f} m, '
            f'{depths.median:.2f} m in the middle, in {depths.maps} maps, at {depths.scale:g} m a '
            'value (--depth-scale).'
        )
        if depths.farthest > self.farthest:
            text += f' The model predicts up to {self.farthest:g} m; what is farther is unknown.'
        if self.head.get('target') == 'disparity':
            text += (
                ' The model predicts a disparity without a unit, which is compared with the '
                'inverse of the depth after each image was fitted by a scale and a shift, in '
                'training and in a test. For meters give --arch, which begins with a new head.'
            )
        return text
