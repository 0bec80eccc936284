"""The recipe of a classifier for a folder of images."""

import math
from pathlib import Path
from typing import Any

from mmengine.device import get_device

from vit_plugin.data.annotated import form_of
from vit_plugin.data.folders import SEED, ImageFolder, read_image_folder
from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import base_of
from vit_plugin.models.classifier import classifier_parts

from .recipe import Recipe, data_sections, summary
from .request import SMALL, Request, counted, rounded_up, typical_size
from .schedule import adamw, batch_size_for, epochs_for, for_batch

LARGEST, FEWEST_PATCHES = 224, 4  # pixels, and patches along a side, of an image from scratch
LARGEST_OF_SMALL = 128  # pixels
FEW_STEPS, FEW_IMAGES = 3000, 10_000  # from scratch


def classifier_recipe(request: Request) -> Recipe:
    """The config of a training on ``data/{train,val}/<class>/`` or ``data/<class>/``.

    Raises:
        ConfigError: see :func:`~vit_plugin.data.folders.read_image_folder`. For a folder with
            boxes it names ``--task``.
    """
    try:
        found = read_image_folder(request.data, request.work_dir)
    except ConfigError as error:
        if not form_of(Path(request.data)):
            raise
        raise ConfigError(f'--data: {request.data!r} has boxes; give --task detection. As folders of classes it cannot '
                          f'be read: {str(error).removeprefix("--data: ")}') from error
    count, scratch = len(found.train), request.from_scratch
    least = 16 if request.is_small else 8  # its BatchNorm needs some images
    batch_size = min(request.batch_size or batch_size_for(count, 128 if scratch else 64, least), count)
    epochs = request.epochs or epochs_for(count, batch_size, *(
        (1500, 10, 100) if request.is_small and get_device() == 'cpu' else (20000, 50, 300) if scratch else
        (2000, 10, 50)))
    few_steps = scratch and epochs * math.ceil(count / batch_size) < FEW_STEPS
    size = request.img_size or image_size(request, found)
    held_out = f'held out, a tenth of each class by seed {SEED}' if found.held_out else ''
    text = summary(request, found.train, found.val, held_out, epochs, batch_size, (size, size))
    if found.unseen:
        text += f' None to validate of {", ".join(found.unseen[:5])}{" and others" * (len(found.unseen) > 5)}.'
    if found.outside:
        text += f' {counted(found.outside, "image")} outside of the folders of the classes left out.'
    if scratch and count < FEW_IMAGES and size > SMALL:
        text += (' Few photographs teach little from scratch: --weights '
                 'timm://vit_small_patch16_224.augreg_in21k_ft_in1k begins with what a model has learnt on millions.')
    # arXiv:2111.06377, Appendix A.2; arXiv:2205.01580, with twice its rate, since small sets of images give fewer steps
    learning = ((for_batch(1e-3, 64 if request.is_small else 256, batch_size), 0.1, 1.0, 20) if scratch else
                (for_batch(5e-4, 256, batch_size), 0.05, 0.75, 10))
    classes = list(found.classes)
    train, val = (dict(type='CustomDataset', data_prefix=request.data, ann_file=str(Path(request.work_dir, name)))
                  for name in ('train.txt', 'val.txt'))
    metric = dict(type='Accuracy', topk=(1, 5) if len(classes) > 5 else (1, ))
    sections = dict(
        **({} if scratch else dict(load_from=request.weights)), classes=classes,
        model=model_of(request, len(classes), size, mixes=scratch and not few_steps),
        data_preprocessor=dict(num_classes=len(classes), **request.normalisation, to_rgb=True),
        **data_sections(request, len(classes), batch_size, *pipelines(request, size, few_steps), train, val, metric),
        **adamw(*learning, epochs, batch_size, 'accuracy/top1', request.patience,
                len(found.val) / count))
    # lists of images, as CustomDataset reads them
    files = {f'{name}.txt': ''.join(f'{path} {label}\n' for path, label in samples)
             for name, samples in (('train', found.train), ('val', found.val))}
    return Recipe(text, sections, [base_of('_base_/default_runtime.py')], files)


def image_size(request: Request, found: ImageFolder) -> int:
    """The size of the weights' images. From scratch that of the data, with at least 4 x 4 patches and up to 224 px."""
    if not request.from_scratch:
        return request.native_size()
    shorter = min(typical_size([Path(request.data, image) for image, _ in found.train]))
    stride = request.meta_backbone(shorter).patch_embed.stride
    return min(max(rounded_up(shorter, stride), FEWEST_PATCHES * stride),
               LARGEST_OF_SMALL if request.is_small else LARGEST)


def model_of(request: Request, num_classes: int, size: int, mixes: bool) -> dict[str, Any]:
    """The classifier. It may mix images in training."""
    parts = classifier_parts(**{**request.backbone(size), 'img_size': size})
    head = dict(type='vit_plugin.ViTClsHead', num_classes=num_classes, in_channels=parts.in_channels,
                loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'))
    optional = dict(neck=parts.neck) if parts.neck else {}
    if mixes:
        optional['train_cfg'] = dict(augments=[dict(type='Mixup', alpha=0.2)])
    return dict(type='ImageClassifier', backbone=parts.backbone, head=head, **optional)


def pipelines(request: Request, size: int, few_steps: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps for an image in training, and in a test, where they are timm's ``crop_pct`` and ``crop_mode``.

    A training of few steps sees no image often, and learns slower from augmented ones.
    """
    pixels = request.pixels
    resize = dict(interpolation=pixels['interpolation'], backend='pillow')  # which timm and transformers resize with
    augment = dict(type='RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10)
    train = [dict(type='vit_plugin.LoadImage'),
             dict(type='RandomResizedCrop', scale=size, crop_ratio_range=(0.5 if few_steps else 0.25, 1.0), **resize),
             *([] if request.no_flip else [dict(type='RandomFlip', prob=0.5, direction='horizontal')]),
             *([augment] if request.from_scratch and not few_steps else []), dict(type='PackInputs')]
    larger, squash = math.floor(size / pixels['crop_pct']), pixels['crop_mode'] == 'squash'
    step = (dict(type='Resize', scale=(larger, larger), **resize) if squash else
            dict(type='ResizeEdge', scale=larger, edge='short', **resize))
    crop = [] if squash and larger == size else [dict(type='CenterCrop', crop_size=size)]
    return train, [dict(type='LoadImageFromFile'), step, *crop, dict(type='PackInputs')]
