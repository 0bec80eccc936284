"""Recipe of panoptic segmentation for a folder with COCO's panoptic annotations."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import ClassVar

from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.panoptic import PANOPTIC_SUFFIXES, as_panoptic, png_of, read_panoptic_folder
from anyfolder.readers.splits import Split
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.config import framework_model
from vit_plugin.config.task_model import mask_points_for
from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.mask2former import MMDET_MASK2FORMER
from vit_plugin.from_folder.model_recipe import CONTINUED_TASKS
from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe

PANOPTIC_FOLDER = 'panoptic'  # folder for copied PNGs in the work directory
BEST_METRIC = 'coco_panoptic/PQ'  # the metric that decides which checkpoint is best


class PanopticRecipe(DetectionRecipe):
    """Recipe of a training on images and PNGs of segments, which are things or stuff.

    Raises:
        ConfigError: for images whose PNGs MMDetection would not find.
    """

    # Overrides attributes of TaskRecipe, which describes them.
    continued_tasks = (*CONTINUED_TASKS, 'panoptic')
    packages = ('mmdet', 'vit_plugin.detection', 'panopticapi')
    monitor = BEST_METRIC
    with_masks = True
    checkpoint_hook: ClassVar = dict(save_best=BEST_METRIC, rule='greater')

    def read(self, tree: Tree) -> Listing:
        return read_panoptic_folder(tree, self.request.skip_invalid)

    def check(self, listing: Listing) -> None:
        for split, records in listing.parts.items():
            # MMDetection replaces these suffixes in the name of an image to find its PNG.
            wrong = next(
                (record.path for record in records if record.path.suffix not in PANOPTIC_SUFFIXES),
                None,
            )
            if wrong:
                raise ConfigError(
                    f'--task panoptic takes images named {" or ".join(PANOPTIC_SUFFIXES)}, and '
                    f'{str(wrong)!r} is not; save it as one.'
                )
            if len({record.path.parent for record in records}) > 1:
                raise ConfigError(
                    f'the images of {split} are in several folders, and --task panoptic '
                    'takes those of each split from one; put them into one.'
                )
            names = Counter(png_of(path) for path in {record.path for record in records})
            if names and (most := names.most_common(1)[0])[1] > 1:
                raise ConfigError(
                    f'two images of {split} differ only in their suffix, and MMDetection would '
                    f'take {most[0]!r} as the PNG of both; rename one.'
                )

    def model(self) -> Section:
        """The detector's model, with padding that has no class.

        A Mask2Former that was saved without a ``train_cfg`` gets MMDetection's.
        """
        model = super().model()
        if model['panoptic_head']['type'] == 'Mask2FormerHead' and not model.get('train_cfg'):
            train_cfg = framework_model(MMDET_MASK2FORMER)['train_cfg']
            model['train_cfg'] = train_cfg | dict(num_points=mask_points_for(self.size))
        model['data_preprocessor'] |= dict(mask_pad_value=0, pad_seg=True, seg_pad_value=255)
        return model

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The pipelines for boxes, with the PNGs."""
        train, test = super().pipelines()
        segments = dict(type='LoadPanopticAnnotations')
        for steps in (train, test):
            steps[:] = [segments if step['type'] == 'LoadAnnotations' else step for step in steps]
        return train, test

    def list_of(self, split: Split) -> str:
        """The images and segments of a split."""
        listing = self.listing
        return json.dumps(as_panoptic(listing.parts[split], listing.classes, listing.stuff or 0))

    def write_maps(self, folder: Path) -> None:
        """Copy the PNG of each image to the name by which MMDetection finds it."""
        for split, records in self.listing.parts.items():
            for record in records:
                target = folder / PANOPTIC_FOLDER / split / png_of(record.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(record.mask), target)

    def dataset(self, split: Split) -> Section:
        """MMDetection's data set."""
        prefix = dict(
            img=str(self.listing.parts[split][0].path.parent.absolute()),
            seg=self.request.path_of(f'{PANOPTIC_FOLDER}/{split}'),
        )
        return dict(super().dataset(split), type='CocoPanopticDataset', data_prefix=prefix)

    def metric(self, split: Split) -> Section:
        """The panoptic quality (PQ), also of each class."""
        return dict(
            type='CocoPanopticMetric',
            classwise=True,
            ann_file=self.list_path(split),
            seg_prefix=self.request.path_of(f'{PANOPTIC_FOLDER}/{split}'),
        )
