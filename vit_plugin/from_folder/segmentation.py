"""The recipe of a segmentor with SegFormer's head (arXiv:2105.15203) for images and masks."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

from vit_plugin.config import data_workers
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.shipped import base_of

from .multispectral import backbone_of, normalization_of, reader_of
from .readers.listing import Listing
from .readers.mask_folders import class_map, read_mask_folder
from .readers.photos import Tree
from .readers.records import Photo
from .readers.splits import Split
from .recipe import (
    HELD_OUT,
    Recipe,
    data_sections,
    summary,
)
from .request import Request, image_scale, rounded_up
from .schedule import (
    adamw,
    epochs_for,
    for_batch,
    muon,
    training_sections,
)

LARGEST = 512  # pixels of the longer side
WIDE, NARROW = 128, 64  # channels of the head; of that of the small hybrid
MASKS = 'masks'  # in the work directory


def segmentor_recipe(request: Request) -> Recipe:
    """The config of a training on images and masks.

    Raises:
        MissingExtraError: if MMSegmentation is not installed.
        ConfigError: see :func:`~vit_plugin.from_folder.readers.mask_folders.read_mask_folder`.
    """
    with needed_by('--task segmentation'):
        import mmseg  # noqa: F401
    found = read_mask_folder(Tree(request.data), request.skip_invalid)
    count, scratch = len(found.train), request.from_scratch
    batch_size = min(request.batch_size or 4, count)
    steps = 1000 if request.is_small else 2000
    epochs = request.epochs or epochs_for(count, batch_size, steps, 12, 72 if scratch else 36)
    scale = image_scale(request, found.train, LARGEST)
    text = summary(request, found, HELD_OUT, epochs, batch_size, scale)
    if request.balance:
        raise ConfigError(
            '--balance is for images of classes and boxes; a mask has many classes: leave it out.'
        )
    if request.is_small:
        learning = muon(for_batch(4e-3, 4, batch_size)), 1.0
    elif scratch:
        learning = adamw(for_batch(1e-3, 4, batch_size)), 1.0
    else:
        learning = adamw(for_batch(1e-4, 16, batch_size)), 0.8
    learning_sections = training_sections(
        *learning, 12, epochs, batch_size, 'mIoU', request.patience, len(found.val) / count
    )
    learning_sections['default_hooks']['checkpoint'] |= dict(save_best='mIoU', rule='greater')
    sections = dict(
        classes=list(found.classes),
        model=model_of(request, found, scale),
        **data_sections(
            request,
            found,
            batch_size,
            *pipelines(request, scale, found.bands),
            lambda split: dataset_of(request, found, split),
            lambda _: dict(type='IoUMetric', iou_metrics=['mIoU']),
        ),
        **learning_sections,
        log_processor=dict(by_epoch=True),
    )
    files = {
        f'{split}.txt': found.as_lines(part, labeled=False)
        for split, part in found.parts.items()
        if part
    }
    return Recipe(text, sections, [base_of('_base_/mmseg_runtime.py')], found, files)


def dataset_of(request: Request, found: Listing, split: Split) -> dict[str, Any]:
    """MMSegmentation's data set of a part, with the masks that :func:`write_masks` writes."""
    folder = Path(request.absolute_work_dir)
    return dict(
        type='BaseSegDataset',
        ann_file=str(folder / f'{split}.txt'),
        img_suffix='',
        seg_map_suffix='.png',
        reduce_zero_label=False,
        data_prefix=dict(img_path=str(found.root), seg_map_path=str(folder / MASKS)),
    )


def write_masks(found: Listing, folder: Path) -> None:
    """Write the class of each pixel of all photographs, ``folder/masks/PHOTOGRAPH.png``."""

    def write(photo: Photo) -> None:
        target = folder / MASKS / f'{found.name_of(photo)}.png'
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(class_map(found, photo)).save(target, compress_level=1)

    with ThreadPoolExecutor(data_workers()) as pool:
        for _ in pool.map(write, chain(*found.parts.values())):
            pass


def model_of(request: Request, found: Listing, scale: tuple[int, int]) -> dict[str, Any]:
    """Maps of a hybrid's CNN and its tokens, or a plain transformer's map, for the all-MLP head."""
    arguments = {**backbone_of(request, min(scale), found.bands), 'img_size': crop_of(scale)}
    if not request.arch.startswith('timm://'):
        arguments['with_cls_token'] = False
    built = request.meta_backbone(min(scale), **{**arguments, 'out_type': 'pyramid'})
    arguments['out_type'] = 'pyramid' if len(built.strides) > 1 else 'featmap'
    if not request.from_scratch:
        arguments['init_cfg'] = dict(type='Pretrained', checkpoint=request.weights)
    channels = list(built.channels)
    head = dict(
        type='SegformerHead',
        in_channels=channels,
        in_index=list(range(len(channels))),
        channels=NARROW if request.is_small else WIDE,
        num_classes=len(found.classes),
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
            **normalization_of(request, found),
            bgr_to_rgb=not found.bands,
            size=crop_of(scale),
            seg_pad_val=255,
        ),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
    )


def crop_of(scale: tuple[int, int]) -> tuple[int, int]:
    """Height and width of an image in training, as multiples of 32."""
    width, height = scale
    return rounded_up(height, 32), rounded_up(width, 32)


def pipelines(
    request: Request, scale: tuple[int, int], bands: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps for an image in training, and in a test."""
    resize = dict(type='RandomResize', scale=scale, ratio_range=(0.75, 1.5), keep_ratio=True)
    train: list[dict[str, Any]] = [
        dict(reader_of(bands), type='vit_plugin.LoadImage'),
        dict(type='LoadAnnotations'),
        resize,
        dict(type='RandomCrop', crop_size=crop_of(scale), cat_max_ratio=0.9),
        *([] if request.no_flip else [dict(type='RandomFlip', prob=0.5)]),
        dict(type='PackSegInputs'),
    ]
    test: list[dict[str, Any]] = [
        reader_of(bands),
        dict(type='Resize', scale=scale, keep_ratio=True),
        dict(type='LoadAnnotations'),  # after the resize: maps are compared in the file's pixels
        dict(type='PackSegInputs'),
    ]
    return train, test
