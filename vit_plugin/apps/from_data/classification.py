"""The recipe of a classifier for a folder of images."""

import math
from pathlib import Path
from typing import Any

from vit_plugin.data.annotated import form_of
from vit_plugin.data.folders import SEED, ImageFolder, Sample, read_image_folder
from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import base_of
from vit_plugin.models.classifier import classifier_parts

from .schedule import adamw, batch_size_for, epochs_for, for_batch
from .text import Name
from .wish import Recipe, Wish, counted, data_workers, rounded_up, typical_size

LARGEST, FEWEST_PATCHES = 224, 4  # pixels, and patches along a side, of an image from scratch


def classifier_recipe(wish: Wish) -> Recipe:
    """The config of a training on ``data/{train,val}/<class>/`` or ``data/<class>/``.

    Raises:
        ConfigError: see :func:`~vit_plugin.data.folders.read_image_folder`. For a folder with
            boxes it names ``--task``.
    """
    try:
        found = read_image_folder(wish.data, wish.work_dir)
    except ConfigError as error:
        if not form_of(Path(wish.data)):
            raise
        raise ConfigError(f'--data: {wish.data!r} has boxes; give --task detection. As folders of classes it cannot be '
                          f'read: {str(error).removeprefix("--data: ")}') from error
    count, tuned = len(found.train), wish.weights is not None
    batch_size = min(wish.batch_size or batch_size_for(count, 64 if tuned else 128), count)
    epochs = wish.epochs or (epochs_for(count, batch_size, 2000, 10, 50) if tuned else
                             epochs_for(count, batch_size, 20000, 50, 300))
    size = wish.img_size or image_size(wish, found)
    text = (f'{read_as(found)} {"Fine-tuned" if tuned else "From scratch"}, {counted(epochs, "epoch")} of '
            f'{counted(math.ceil(count / batch_size), "step")}, images of {size} x {size} pixels.')
    classes = list(found.classes)
    sections: dict[str, Any] = dict(work_dir=wish.work_dir)
    if tuned:
        sections['load_from'] = wish.weights
    sections |= dict(classes=classes, model=model_of(wish, found, size),
                     data_preprocessor=dict(num_classes=len(classes), **wish.normalisation, to_rgb=True))
    sections |= data_of(wish, len(classes), size, batch_size)
    # arXiv:2111.06377, Appendix A.2; arXiv:2205.01580, with twice its rate, since small sets of images give fewer steps
    sections |= (adamw(for_batch(5e-4, 256, batch_size), 0.05, 0.75, 10, epochs, batch_size) if tuned else
                 adamw(for_batch(1e-3, 256, batch_size), 0.1, 1.0, 20, epochs, batch_size))
    return Recipe(text, sections, [base_of('_base_/default_runtime.py')],
                  {'train.txt': list_of(found.train), 'val.txt': list_of(found.val)})


def read_as(found: ImageFolder) -> str:
    """How the folder was read, in sentences."""
    held_out = f'held out, a tenth of each class by seed {SEED}' if found.held_out else 'to validate'
    said = [f'{counted(len(found.train), "image")} to train on, {counted(len(found.val), "image")} {held_out}.']
    if found.unseen:
        said.append(f'None to validate of {", ".join(found.unseen[:5])}{" and others" * (len(found.unseen) > 5)}.')
    if found.beside:
        said.append(f'{counted(found.beside, "image")} outside of the folders of the classes left out.')
    return ' '.join(said)


def image_size(wish: Wish, found: ImageFolder) -> int:
    """The size of the weights' images. From scratch that of the data, with at least 4 x 4 patches and up to 224 px."""
    if wish.weights is not None:
        return wish.native_size()
    stride = wish.meta_backbone().patch_embed.stride
    shorter = min(typical_size([Path(wish.data, image) for image, _ in found.train]))
    return min(max(rounded_up(shorter, stride), FEWEST_PATCHES * stride), LARGEST)


def model_of(wish: Wish, found: ImageFolder, size: int) -> dict[str, Any]:
    """The classifier, which mixes images if it begins from scratch."""
    parts = classifier_parts(wish.arch, img_size=size)
    augments = {} if wish.weights is not None else dict(train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]))
    return dict(type='ImageClassifier', backbone=parts.backbone, **(dict(neck=parts.neck) if parts.neck else {}),
                head=dict(type='vit_plugin.ViTClsHead', num_classes=len(found.classes), in_channels=parts.in_channels,
                          loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')), **augments)


def data_of(wish: Wish, num_classes: int, size: int, batch_size: int) -> dict[str, Any]:
    """Pipelines, loaders and metrics."""
    pixels = wish.pixels
    resize = dict(interpolation=pixels['interpolation'], backend='pillow')  # which timm and transformers resize with
    train = [dict(type='vit_plugin.LoadImage'),
             dict(type='RandomResizedCrop', scale=size, crop_ratio_range=(0.25, 1.0), **resize),
             dict(type='RandomFlip', prob=0.5, direction='horizontal'),
             *([] if wish.weights is not None else [dict(
                 type='vit_plugin.RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10)]),
             dict(type='PackInputs')]
    test = [dict(type='LoadImageFromFile'), *resized(size, pixels, resize), dict(type='PackInputs')]

    def loader(part: str, pipeline: str, sampler: dict) -> dict[str, Any]:
        return dict(batch_size=batch_size, num_workers=data_workers(), sampler=sampler, dataset=dict(
            type='CustomDataset', data_prefix=wish.data, ann_file=str(Path(wish.work_dir, f'{part}.txt')),
            metainfo=dict(classes=Name('classes')), pipeline=Name(pipeline)))

    metric = dict(type='Accuracy', topk=(1, 5) if num_classes > 5 else (1, ))
    return dict(train_pipeline=train, test_pipeline=test,
                train_dataloader=loader('train', 'train_pipeline',
                                        dict(type='vit_plugin.DefaultSampler', shuffle=True)),
                val_dataloader=loader('val', 'test_pipeline', dict(type='DefaultSampler', shuffle=False)),
                val_evaluator=metric, test_dataloader=Name('val_dataloader'), test_evaluator=Name('val_evaluator'))


def resized(size: int, pixels: dict[str, Any], resize: dict[str, Any]) -> list[dict[str, Any]]:
    """timm's ``crop_pct`` and ``crop_mode`` as steps of a pipeline."""
    larger = math.floor(size / pixels['crop_pct'])
    if pixels['crop_mode'] == 'squash':
        steps = [dict(type='Resize', scale=(larger, larger), **resize)]
    else:
        steps = [dict(type='ResizeEdge', scale=larger, edge='short', **resize)]
    return steps if steps[0]['type'] == 'Resize' and larger == size else [
        *steps, dict(type='CenterCrop', crop_size=size)]


def list_of(samples: list[Sample]) -> str:
    """The content of an annotation file of MMPretrain's ``CustomDataset``."""
    return ''.join(f'{path} {label}\n' for path, label in samples)
