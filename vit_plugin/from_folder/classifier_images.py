"""What classification and pre-training share: schedules, image size and test transforms."""

import math

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from vit_plugin.arguments.fields import Section
from vit_plugin.files.resizing import rounded_up

from .request import Request
from .schedule import SLOWER_STEM, Schedule
from .starting_point import StartingPoint
from .task_recipe import Pipeline, typical_size

# Bounds for training from scratch: the largest side in pixels, and the fewest patches along a side.
MAX_SCRATCH_SIDE, MIN_SCRATCH_PATCHES = 224, 4
MAX_SMALL_MODEL_SIDE = 128  # pixels
# Training from scratch follows arXiv:2111.06377, Appendix A.2, and arXiv:2205.01580, with twice its
# rate, since small data sets give fewer steps. The BatchNorm of the small hybrid needs a minimum of
# images in a batch.
SMALL_MODEL = Schedule(
    steps=1500,
    epochs=(10, 100),
    batch=(16, 128),
    rate=1e-3,
    rate_batch=64,
    length=20,
    weight_decay=0.1,
)
# Schedules by the keys of StartingPoint.schedule_key.
CLASSIFIER_SCHEDULES = dict(
    small=SMALL_MODEL,
    small_on_gpu=SMALL_MODEL._replace(steps=20_000, epochs=(50, 300)),
    scratch=Schedule(
        steps=20_000,
        epochs=(50, 300),
        batch=(8, 128),
        rate=1e-3,
        rate_batch=256,
        length=20,
        weight_decay=0.1,
    ),
    stem=Schedule(
        steps=2000,
        epochs=(10, 50),
        batch=(8, 64),
        rate=2e-3,
        rate_batch=256,
        length=10,
        rate_factors=SLOWER_STEM,
    ),
    fine_tuned=Schedule(
        steps=2000,
        epochs=(10, 50),
        batch=(8, 64),
        rate=5e-4,
        rate_batch=256,
        length=10,
        layer_decay=0.75,
    ),
)


def read_classes(tree: Tree, request: Request) -> Listing:
    """The images and their classes.

    Raises:
        ConfigError: see
            :func:`~anyfolder.readers.class_folders.read_class_folders`. For a folder
            with boxes, masks or depth it names ``--task``.
    """
    return read_class_folders(tree, request.work_dir, request.skip_invalid)


def image_size(start: StartingPoint, listing: Listing) -> int:
    """The side of the model's square input, in pixels.

    With weights, it is the side they were trained at. The same holds for another library's
    classifier, whose config states its size. Otherwise it is the shorter side of the data, rounded
    up to whole patches, between 4 x 4 patches and 224 px, or 128 px for a small model.
    """
    if not start.from_scratch or (start.wrapped and start.pooled_output):
        return start.native_size()
    shorter = min(typical_size(listing.train))
    stride = start.patch_side(shorter)
    return min(
        max(rounded_up(shorter, stride), MIN_SCRATCH_PATCHES * stride),
        MAX_SMALL_MODEL_SIDE if start.is_small else MAX_SCRATCH_SIDE,
    )


def resizing(start: StartingPoint) -> Section:
    """Options of a resize transform that resizes as timm and transformers do, with Pillow."""
    return dict(interpolation=start.pixels['interpolation'], backend='pillow')


def evaluation_pipeline(start: StartingPoint, size: int) -> Pipeline:
    """The test transforms, with timm's ``crop_pct`` and ``crop_mode``."""
    pixels, resize = start.pixels, resizing(start)
    resized_side = math.floor(size / pixels['crop_pct'])
    steps: Pipeline = [dict(type='LoadImageFromFile')]
    is_squashed = pixels['crop_mode'] == 'squash'
    if is_squashed:
        steps.append(dict(type='Resize', scale=(resized_side, resized_side), **resize))
    else:
        steps.append(dict(type='ResizeEdge', scale=resized_side, edge='short', **resize))
    if not is_squashed or resized_side != size:
        steps.append(dict(type='CenterCrop', crop_size=size))
    return [*steps, dict(type='PackInputs')]
