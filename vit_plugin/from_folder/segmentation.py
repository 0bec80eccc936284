"""A segmentor with SegFormer's head (arXiv:2105.15203) for images and masks."""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from PIL import Image

from vit_plugin.config import data_workers

from .multispectral import backbone_of, normalization_of, reader_of
from .readers.listing import Listing
from .readers.mask_folders import class_map, read_mask_folder
from .readers.records import ImageRecord
from .readers.splits import Split
from .schedule import Schedule, muon
from .starting_point import SMALL
from .task import Pipeline, Task, rounded_up

LARGEST = 512  # pixels of the longer side
WIDE, NARROW = 128, 64  # channels of the head; of that of the small hybrid
MASKS = 'masks'  # in the work directory


class Segmentation(Task):
    """A training on images and masks."""

    packages = ('mmseg',)
    # The maps of the last small hybrid begin at a stride of 4 and miss thin shapes
    # (docs/results.md).
    small_rows = (SMALL, SMALL)
    schedules: ClassVar = dict(
        small=Schedule(1000, (12, 72), (4, 4), 4e-3, 4, 12, optimizer=muon),
        scratch=Schedule(2000, (12, 72), (4, 4), 1e-3, 4, 12),
        fine_tuned=Schedule(2000, (12, 36), (4, 4), 1e-4, 16, 12, layer_decay=0.8),
    )
    bases = ('_base_/mmseg_runtime.py',)
    monitor = 'mIoU'
    takes_bands, takes_balance = True, False
    more: ClassVar = dict(log_processor=dict(by_epoch=True))
    checkpoint_hook: ClassVar = dict(save_best='mIoU', rule='greater')

    @cached_property
    def listing(self) -> Listing:
        """See :func:`~vit_plugin.from_folder.readers.mask_folders.read_mask_folder`."""
        return read_mask_folder(self.tree(), self.request.skip_invalid)

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized."""
        return self.image_scale(LARGEST)

    @property
    def crop(self) -> tuple[int, int]:
        """Height and width of an image in training, as multiples of 32."""
        width, height = self.size
        return rounded_up(height, 32), rounded_up(width, 32)

    def model(self) -> dict[str, Any]:
        """A hybrid's maps and tokens, or a plain transformer's map, for the all-MLP head."""
        start, listing, shorter = self.start, self.listing, min(self.size)
        arguments = {**backbone_of(start, shorter, listing.bands), 'img_size': self.crop}
        if not start.arch.startswith('timm://'):
            arguments['with_cls_token'] = False
        built = start.meta_backbone(shorter, **{**arguments, 'out_type': 'pyramid'})
        arguments['out_type'] = 'pyramid' if len(built.strides) > 1 else 'featmap'
        if not start.from_scratch:
            arguments['init_cfg'] = dict(type='Pretrained', checkpoint=start.weights)
        channels = list(built.channels)
        head = dict(
            type='SegformerHead',
            in_channels=channels,
            in_index=list(range(len(channels))),
            channels=NARROW if start.is_small else WIDE,
            num_classes=len(listing.classes),
            norm_cfg=dict(type='GN', num_groups=16),
            align_corners=False,
            loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True),
        )
        return dict(
            type='EncoderDecoder',
            backbone=dict(type='vit_plugin.VisionTransformer', **arguments),
            decode_head=head,
            data_preprocessor=dict(
                type='SegDataPreProcessor',
                **normalization_of(start, listing),
                bgr_to_rgb=not listing.bands,
                size=self.crop,
                seg_pad_val=255,
            ),
            train_cfg=dict(),
            test_cfg=dict(mode='whole'),
        )

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The steps for an image in training, and in a test."""
        reader, scale = reader_of(self.listing.bands), self.size
        resize = dict(type='RandomResize', scale=scale, ratio_range=(0.75, 1.5), keep_ratio=True)
        train: Pipeline = [
            dict(reader, type='vit_plugin.LoadImage'),
            dict(type='LoadAnnotations'),
            resize,
            dict(type='RandomCrop', crop_size=self.crop, cat_max_ratio=0.9),
            *self.flip(),
            dict(type='PackSegInputs'),
        ]
        test: Pipeline = [
            reader,
            dict(type='Resize', scale=scale, keep_ratio=True),
            # After the resize: maps are compared in the file's pixels.
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ]
        return train, test

    def dataset(self, split: Split) -> dict[str, Any]:
        """MMSegmentation's data set, with the masks that :func:`write_masks` writes."""
        return dict(
            type='BaseSegDataset',
            ann_file=self.list_path(self.list_name(split)),
            img_suffix='',
            seg_map_suffix='.png',
            reduce_zero_label=False,
            data_prefix=dict(img_path=str(self.listing.root), seg_map_path=self.list_path(MASKS)),
        )

    def metric(self, split: Split) -> dict[str, Any]:
        """The mean intersection over union."""
        return dict(type='IoUMetric', iou_metrics=['mIoU'])


def write_masks(listing: Listing, folder: Path) -> None:
    """Write the class of each pixel of all images, ``folder/masks/IMAGE.png``."""

    def write(record: ImageRecord) -> None:
        target = folder / MASKS / f'{listing.name_of(record)}.png'
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(class_map(listing, record)).save(target, compress_level=1)

    with ThreadPoolExecutor(data_workers()) as pool:
        for _ in pool.map(write, chain(*listing.parts.values())):
            pass
