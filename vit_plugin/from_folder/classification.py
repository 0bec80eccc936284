"""The recipe of a classifier for a folder of images."""

import math
from pathlib import Path
from typing import Any

from mmengine.device import get_device

from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import base_of
from vit_plugin.inference.saved_model import open_model
from vit_plugin.models.classifier import classifier_parts

from .methods import FEATURES
from .multispectral import backbone_of, normalization_of, reader_of
from .readers.annotated import forms_of
from .readers.class_folders import read_class_folders
from .readers.listing import Listing, is_encodable
from .readers.mask_folders import has_masks
from .readers.photos import Tree
from .readers.splits import SEED, Split
from .recipe import Recipe, data_sections, summary
from .request import (
    SMALL,
    Request,
    rounded_up,
    typical_size,
)
from .schedule import (
    adamw,
    batch_size_for,
    epochs_for,
    for_batch,
    training_sections,
)

LARGEST, FEWEST_PATCHES = 224, 4  # pixels, and patches along a side, of an image from scratch
LARGEST_OF_SMALL = 128  # pixels
FEW_STEPS, FEW_IMAGES = 3000, 10_000  # from scratch
# The steps of a training, and the fewest and most epochs.
ON_A_CPU, FROM_SCRATCH, FINE_TUNING = (1500, 10, 100), (20000, 50, 300), (2000, 10, 50)


def classifier_recipe(request: Request) -> Recipe:
    """The config of a training on ``data/{train,val}/<class>/`` or ``data/<class>/``.

    Raises:
        ConfigError: see :func:`read_classes`.
    """
    found = read_classes(request)
    count, scratch = len(found.train), request.from_scratch
    least = 16 if request.is_small else 8  # its BatchNorm needs some images
    batch_size = min(
        request.batch_size or batch_size_for(count, 128 if scratch else 64, least), count
    )
    epochs = request.epochs or epochs_for(count, batch_size, *budget_of(request))
    few_steps = scratch and epochs * math.ceil(count / batch_size) < FEW_STEPS
    size = request.img_size or image_size(request, found)
    text = words_of(request, found, epochs, batch_size, size)
    # arXiv:2111.06377, Appendix A.2; arXiv:2205.01580, with twice its rate, since small sets of
    # images give fewer steps
    learning = (
        (adamw(for_batch(1e-3, 64 if request.is_small else 256, batch_size), 0.1), 1.0, 20)
        if scratch
        else (adamw(for_batch(5e-4, 256, batch_size)), 0.75, 10)
    )
    classes = list(found.classes)
    monitor = 'multi-label/mAP' if found.multi_label else 'accuracy/top1'
    sections = dict(
        **({} if scratch else dict(load_from=request.weights)),
        classes=classes,
        model=model_of(request, found, size, mixes=scratch and not few_steps),
        data_preprocessor=dict(
            num_classes=len(classes), **normalization_of(request, found), to_rgb=not found.bands
        ),
        **data_sections(
            request,
            found,
            batch_size,
            *pipelines(request, size, few_steps, found.bands),
            lambda split: dataset_of(request, found, split),
            lambda _: metric_of(found),
        ),
        **training_sections(
            *learning, epochs, batch_size, monitor, request.patience, len(found.val) / count
        ),
    )
    lists = {
        list_name(found, split): list_of(found, split)
        for split, part in found.parts.items()
        if part
    }
    return Recipe(text, sections, [base_of('_base_/default_runtime.py')], found, lists)


def words_of(request: Request, found: Listing, epochs: int, batch_size: int, size: int) -> str:
    """The summary of a training, with what is unusual about it."""
    held_out = f'held out, a tenth of each class by seed {SEED}'
    text = summary(request, found, held_out, epochs, batch_size, (size, size))
    if request.teacher:
        text += f' It also learns from {request.teacher}.'
    if found.unseen:
        others = ' and others' * (len(found.unseen) > 5)
        text += f' None to validate of {", ".join(found.unseen[:5])}{others}.'
    if request.from_scratch and len(found.train) < FEW_IMAGES and size > SMALL:
        text += (
            ' Few photographs teach little from scratch: --weights '
            'timm://vit_small_patch16_224.augreg_in21k_ft_in1k begins with what a model has '
            'learned on millions.'
        )
    return text


def budget_of(request: Request) -> tuple[int, int, int]:
    """The steps of a training, and the fewest and most epochs."""
    if request.is_small and get_device() == 'cpu':
        return ON_A_CPU
    return FROM_SCRATCH if request.from_scratch else FINE_TUNING


def read_classes(request: Request) -> Listing:
    """The images and their classes.

    Raises:
        ConfigError: see
            :func:`~vit_plugin.from_folder.readers.class_folders.read_class_folders`. For a folder
            with boxes or masks it names ``--task``.
    """
    tree = Tree(request.data)
    forms = ' and '.join(form.name for form in forms_of(tree))
    if forms or has_masks(tree):
        has, task = (
            (f'boxes as {forms}', 'detection') if forms else ('images and masks', 'segmentation')
        )
        raise ConfigError(
            f'--data: {request.data!r} has {has}; give --task {task}, or to classify, a folder '
            'that has folders of classes alone.'
        )
    return read_class_folders(tree, request.work_dir, request.skip_invalid)


def is_plain(found: Listing) -> bool:
    """True if lines of text can hold the images and their classes."""
    return not found.multi_label and all(
        is_encodable(found.name_of(photo)) for part in found.parts.values() for photo in part
    )


def list_name(found: Listing, split: Split) -> str:
    """The file with the images of a part."""
    return f'{split}.txt' if is_plain(found) else f'{split}.json'


def list_of(found: Listing, split: Split) -> str:
    """The content of this file."""
    part = found.parts[split]
    return found.as_lines(part, labeled=True) if is_plain(found) else found.as_json(part)


def dataset_of(request: Request, found: Listing, split: Split) -> dict[str, Any]:
    """MMPretrain's data set of a part."""
    file = str(Path(request.absolute_work_dir, list_name(found, split)))
    if is_plain(found):
        return dict(type='CustomDataset', data_prefix=str(found.root), ann_file=file)
    kind = 'MultiLabelDataset' if found.multi_label else 'BaseDataset'
    return dict(type=kind, data_prefix=dict(img_path=str(found.root)), ann_file=file)


def metric_of(found: Listing) -> dict[str, Any]:
    """Mean average precision over classes if an image may have several, else the accuracy."""
    if found.multi_label:
        return dict(type='AveragePrecision')
    return dict(type='Accuracy', topk=(1, 5) if len(found.classes) > 5 else (1,))


def image_size(request: Request, found: Listing) -> int:
    """The image size of the weights, or from scratch that of the data.

    From scratch it has at least 4 x 4 patches and at most 224 px.
    """
    if not request.from_scratch:
        return request.native_size()
    shorter = min(typical_size(found.train))
    stride = request.meta_backbone(shorter).patch_embed.stride
    return min(
        max(rounded_up(shorter, stride), FEWEST_PATCHES * stride),
        LARGEST_OF_SMALL if request.is_small else LARGEST,
    )


def model_of(request: Request, found: Listing, size: int, mixes: bool) -> dict[str, Any]:
    """The classifier. It may mix images in training."""
    num_classes = len(found.classes)
    parts = classifier_parts(**{**backbone_of(request, size, found.bands), 'img_size': size})
    head = dict(
        type='vit_plugin.ViTClsHead',
        num_classes=num_classes,
        in_channels=parts.in_channels,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
    )
    if found.multi_label:
        head = dict(
            type='MultiLabelLinearClsHead', num_classes=num_classes, in_channels=parts.in_channels
        )
    optional: dict[str, Any] = dict(neck=parts.neck) if parts.neck else {}
    if mixes and not found.multi_label:
        optional['train_cfg'] = dict(augments=[dict(type='Mixup', alpha=0.2)])
    if request.teacher:
        lesson = dict(teacher=request.teacher, losses=losses_from(request.teacher, found))
        optional |= dict(type='vit_plugin.Distiller', **lesson)
    return dict(dict(type='ImageClassifier', backbone=parts.backbone, head=head), **optional)


def losses_from(teacher: str, found: Listing) -> list[dict[str, Any]]:
    """What is learned from a teacher: its classes if they are those of the data, else features.

    Raises:
        ConfigError: if the teacher cannot be read.
    """
    classes = [] if '://' in teacher else classes_of(teacher)
    if classes == list(found.classes) and not found.multi_label:
        return [dict(type='vit_plugin.LogitDistillation', temperature=2.0)]
    return FEATURES


def classes_of(checkpoint: str) -> list[str]:
    """The names of the classes that a checkpoint of a classifier says."""
    return list(open_model(checkpoint).checkpoint.dataset_meta.get('classes') or ())


def pipelines(
    request: Request, size: int, few_steps: bool, bands: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The steps for an image in training, and in a test with timm's ``crop_pct`` and ``crop_mode``.

    A training of few steps sees no image often, and learns slower from augmented ones. Bands are
    no colors, of which RandAugment's operations are.
    """
    pixels = request.pixels
    # timm and transformers resize with Pillow, which knows no bands.
    resize = dict(interpolation=pixels['interpolation'], backend='cv2' if bands else 'pillow')
    augment = dict(
        type='RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10
    )
    train = [
        dict(reader_of(bands), type='vit_plugin.LoadImage'),
        dict(
            type='RandomResizedCrop',
            scale=size,
            crop_ratio_range=(0.5 if few_steps else 0.25, 1.0),
            **resize,
        ),
        *([] if request.no_flip else [dict(type='RandomFlip', prob=0.5, direction='horizontal')]),
        *([augment] if request.from_scratch and not few_steps and not bands else []),
        dict(type='PackInputs'),
    ]
    larger, squash = math.floor(size / pixels['crop_pct']), pixels['crop_mode'] == 'squash'
    step = (
        dict(type='Resize', scale=(larger, larger), **resize)
        if squash
        else dict(type='ResizeEdge', scale=larger, edge='short', **resize)
    )
    crop = [] if squash and larger == size else [dict(type='CenterCrop', crop_size=size)]
    return train, [reader_of(bands), step, *crop, dict(type='PackInputs')]
