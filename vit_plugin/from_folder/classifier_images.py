"""Helpers for classification, which pre-training reuses.

They read the class folders, choose the image size, and give the schedules and the test transforms.
"""

import logging
import math

from mmengine.logging import print_log

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.files.resizing import rounded_up

from .image_scale import typical_size
from .request import Request
from .schedule import SLOWER_STEM, Schedule
from .starting_point import StartingPoint

# Bounds for training from scratch: the largest side in pixels, and the fewest patches along a side.
MAX_SCRATCH_SIDE, MIN_SCRATCH_PATCHES = 224, 4
MAX_SMALL_MODEL_SIDE = 128  # pixels
# Training from scratch follows arXiv:2111.06377, Appendix A.2, and arXiv:2205.01580. The latter has
# a rate of 1e-3 for 1024 images. Small data sets give fewer steps, so the rate of `scratch`, scaled
# by `Schedule.rate_for`, is twice as high, and that of `SMALL_MODEL` four times. The BatchNorm of
# the small hybrid needs the minimum of `batch`.
SMALL_MODEL = Schedule(
    steps=1500,
    epochs=(10, 100),
    batch=(16, 128),
    rate=1e-3,
    rate_batch=64,
    schedule_epochs=20,
    weight_decay=0.1,
)
# Schedules by the value of `StartingPoint.schedule_key`; `small_on_gpu` replaces `small` on a GPU.
CLASSIFIER_SCHEDULES = dict(
    small=SMALL_MODEL,
    small_on_gpu=SMALL_MODEL._replace(steps=20_000, epochs=(50, 300)),
    scratch=Schedule(
        steps=20_000,
        epochs=(50, 300),
        batch=(8, 128),
        rate=1e-3,
        rate_batch=256,
        schedule_epochs=20,
        weight_decay=0.1,
    ),
    stem=Schedule(
        steps=2000,
        epochs=(10, 50),
        batch=(8, 64),
        rate=2e-3,
        rate_batch=256,
        schedule_epochs=10,
        rate_factors=SLOWER_STEM,
    ),
    fine_tuned=Schedule(
        steps=2000,
        epochs=(10, 50),
        batch=(8, 64),
        rate=5e-4,
        rate_batch=256,
        schedule_epochs=10,
        layer_decay=0.75,
    ),
)


def read_classes(tree: Tree, request: Request) -> Listing:
    """The images and their classes.

    Raises:
        ConfigError: see :func:`~anyfolder.readers.class_folders.read_class_folders`. If the folder
            has boxes, masks or depth maps, the message names the ``--task`` for them.
    """
    return read_class_folders(tree, request.work_dir, request.skip_invalid)


def image_size(start: StartingPoint, listing: Listing) -> int:
    """The side of the model's square input, in pixels.

    With weights, it is the side that they were trained at. Another library's classifier has the
    size in its config, even without weights. Otherwise it is the shorter side of the data, rounded
    up to whole patches. It has at least 4 patches, and at most 224 pixels (small models: 128).
    """
    if not start.from_scratch or start.is_wrapped_classifier:
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
    """The test transforms, with timm's ``crop_pct`` and ``crop_mode``.

    For the ``crop_mode`` ``'border'``, which pads, they crop the center instead, with a warning.
    """
    pixels, resize = start.pixels, resizing(start)
    if pixels['crop_mode'] == 'border':
        print_log(
            'The weights were trained on images padded to a square (crop_mode border); here their '
            'center is cropped instead.',
            'current',
            logging.WARNING,
        )
    # The center crop of this side then keeps `crop_pct` of the resized image.
    resized_side = math.floor(size / pixels['crop_pct'])
    steps: Pipeline = [dict(type='LoadImageFromFile')]
    is_squashed = pixels['crop_mode'] == 'squash'
    if is_squashed:
        steps.append(dict(type='Resize', scale=(resized_side, resized_side), **resize))
    else:
        steps.append(dict(type='ResizeEdge', scale=resized_side, edge='short', **resize))
    if not is_squashed or resized_side != size:  # a squashed image may have the size already
        steps.append(dict(type='CenterCrop', crop_size=size))
    return [*steps, dict(type='PackInputs')]
