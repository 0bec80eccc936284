"""The recipe of a segmentor with the head of SegFormer (arXiv:2105.15203) for a folder of images and masks."""

from pathlib import Path
from typing import Any

from vit_plugin.data.masks import MaskFolder, read_mask_folder
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.shipped import base_of

from .recipe import HELD_OUT, Recipe, data_sections, summary
from .request import Request, image_scale, rounded_up
from .schedule import adamw, epochs_for, for_batch

LARGEST = 512  # pixels of the longer side
CHANNELS = 128  # of the head


def segmentor_recipe(request: Request) -> Recipe:
    """The config of a training on images and masks.

    Raises:
        MissingExtraError: if MMSegmentation is not installed.
        ConfigError: see :func:`~vit_plugin.data.masks.read_mask_folder`.
    """
    with needed_by('--task segmentation'):
        import mmseg  # noqa: F401
    found = read_mask_folder(request.data)
    count, scratch = len(found.train), request.from_scratch
    batch_size = min(request.batch_size or 4, count)
    epochs = request.epochs or epochs_for(count, batch_size, 2000, 12, 72 if scratch else 36)
    scale = image_scale(request, [found.images / f'{name}{found.suffix}' for name in found.train], LARGEST)
    text = summary(request, found.train, found.val, HELD_OUT * found.held_out, epochs, batch_size, scale)
    if request.balance:
        raise ConfigError('--balance is for images of classes and boxes; a mask has many classes: leave it out.')
    rate, layer_decay = ((1e-3, 4), 1.0) if scratch else ((1e-4, 16), 0.8)
    schedule = adamw(for_batch(*rate, batch_size), 0.05, layer_decay, 12, epochs, batch_size, 'mIoU', request.patience,
                     len(found.val) / count)
    schedule['default_hooks']['checkpoint'] |= dict(save_best='mIoU', rule='greater')
    train, val = (dict(type='BaseSegDataset', img_suffix=found.suffix, seg_map_suffix='.png',
                       ann_file=str(Path(request.work_dir, name)), reduce_zero_label=False,
                       data_prefix=dict(img_path=found.images.as_posix(), seg_map_path=found.masks.as_posix()))
                  for name in ('train.txt', 'val.txt'))
    metric = dict(type='IoUMetric', iou_metrics=['mIoU'])
    sections = dict(classes=list(found.classes), model=model_of(request, found, scale),
                    **data_sections(request, len(found.classes), batch_size, *pipelines(request, scale), train, val,
                                    metric),
                    **schedule, log_processor=dict(by_epoch=True))
    files = {f'{name}.txt': ''.join(f'{line}\n' for line in lines)
             for name, lines in (('train', found.train), ('val', found.val))}
    return Recipe(text, sections, [base_of('_base_/mmseg_runtime.py')], files)


def model_of(request: Request, found: MaskFolder, scale: tuple[int, int]) -> dict[str, Any]:
    """The maps of a hybrid's CNN and its tokens, or the map of a plain transformer, under the all-MLP head."""
    arguments = {**request.backbone(min(scale)), 'img_size': crop_of(scale)}
    if not request.arch.startswith('timm://'):
        arguments['with_cls_token'] = False
    built = request.meta_backbone(min(scale), **{**arguments, 'out_type': 'pyramid'})
    arguments['out_type'] = 'pyramid' if len(built.strides) > 1 else 'featmap'
    if not request.from_scratch:
        arguments['init_cfg'] = dict(type='Pretrained', checkpoint=request.weights)
    channels = list(built.channels)
    head = dict(type='SegformerHead', in_channels=channels, in_index=list(range(len(channels))), channels=CHANNELS,
                num_classes=len(found.classes), norm_cfg=dict(type='GN', num_groups=16), align_corners=False,
                loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True))
    return dict(
        type='EncoderDecoder', backbone=dict(type='vit_plugin.VisionTransformer', **arguments), decode_head=head,
        data_preprocessor=dict(type='SegDataPreProcessor', **request.normalisation, bgr_to_rgb=True,
                               size=crop_of(scale), seg_pad_val=255),
        train_cfg=dict(), test_cfg=dict(mode='whole'))


def crop_of(scale: tuple[int, int]) -> tuple[int, int]:
    """Height and width of an image in training, as multiples of 32."""
    width, height = scale
    return rounded_up(height, 32), rounded_up(width, 32)


def pipelines(request: Request, scale: tuple[int, int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps for an image in training, and in a test."""
    resize = dict(type='RandomResize', scale=scale, ratio_range=(0.75, 1.5), keep_ratio=True)
    train: list[dict[str, Any]] = [
        dict(type='vit_plugin.LoadImage'), dict(type='LoadAnnotations'), resize,
        dict(type='RandomCrop', crop_size=crop_of(scale), cat_max_ratio=0.9),
        *([] if request.no_flip else [dict(type='RandomFlip', prob=0.5)]), dict(type='PackSegInputs')]
    test: list[dict[str, Any]] = [
        dict(type='LoadImageFromFile'), dict(type='Resize', scale=scale, keep_ratio=True),
        dict(type='LoadAnnotations'),  # after the resize: maps are compared in the file's pixels
        dict(type='PackSegInputs')]
    return train, test
