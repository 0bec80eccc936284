"""The MMEngine config of a published model: classes, preprocessing and test pipeline."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.logging import print_log
from timm.data import ImageNetInfo, infer_imagenet_subset

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .published import DEFAULT_NAME, Published

# Placeholder data set for the test, until other data is given.
COCO = dict(
    type='CocoDataset',
    data_root='data/coco/',
    ann_file='annotations/instances_val2017.json',
    data_prefix=dict(img='val2017/'),
    test_mode=True,
)


def detector_settings(
    model: Mapping[str, Any],
    classes: Sequence[str],
    *,
    size: tuple[int, int],
    mean: Sequence[float],
    std: Sequence[float],
    masks: bool = False,
    padded: int | None = None,
) -> Section:
    """The config of a detector of MMDetection, whose test stretches images to one size.

    Args:
        model: ``model`` without its preprocessor.
        classes: the names of its classes.
        size, mean, std: see ``Published.pixels``.
        masks: whether it predicts masks, too.
        padded: keep the aspect ratio of images, and pad them to a multiple of this.
    """
    pixels = dict(type='DetDataPreprocessor', pad_mask=masks, **bgr_normalization(mean, std))
    if padded:
        pixels['pad_size_divisor'] = padded
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=tuple(size), keep_ratio=padded is not None),
        dict(type='LoadAnnotations', with_bbox=True, **(dict(with_mask=True) if masks else {})),
        dict(
            type='PackDetInputs',
            meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
        ),
    ]
    settings = _settings('mmdet', dict(model, data_preprocessor=pixels), COCO, classes, pipeline)
    settings['test_dataloader']['sampler'] = dict(type='DefaultSampler', shuffle=False)
    settings['test_cfg'] = dict()
    settings['test_evaluator'] = dict(
        type='CocoMetric',
        ann_file=f'{COCO["data_root"]}{COCO["ann_file"]}',
        metric=['bbox', 'segm'] if masks else 'bbox',
    )
    return settings


def classifier_settings(
    model: Mapping[str, Any],
    classes: Sequence[str],
    steps: Sequence[Section],
    colors: Mapping[str, Any],
) -> Section:
    """The config of a classifier of MMPretrain, or of an encoder if it has no head.

    Args:
        model: ``model`` without its preprocessor.
        classes: the names of its classes.
        steps: the test transforms, from the pixels of a file to the model's input.
        colors: ``mean`` and ``std`` of RGB from 0 to 255, or with ``to_rgb=False`` of BGR.
    """
    model = dict(model, data_preprocessor=dict(dict(to_rgb=True), **colors))
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    dataset = dict(type='CustomDataset', metainfo=dict(classes=list(classes)), pipeline=pipeline)
    loader = dict(batch_size=1, num_workers=2, dataset=dataset)
    return dict(default_scope='mmpretrain', model=model, test_dataloader=loader)


def imagenet_names(count: int) -> list[str]:
    """ImageNet's names for this number of classes, with a log line; empty for other numbers."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    if not subset:
        return []
    print_log(f"The classes are taken as ImageNet's, since there are {count}.", 'current')
    return list(ImageNetInfo(subset).label_descriptions())


def class_names(published: Published, rows: int) -> list[str]:
    """The class names of a classifier: those in the config, else ImageNet's (logged).

    Args:
        published: the folder.
        rows: rows of the classifier.

    Raises:
        ConfigError: if the number of names differs from the rows, or if the model is not
            single-label.
    """
    if published.config.get('problem_type') not in (None, 'single_label_classification'):
        raise ConfigError(
            f'its config.json has problem_type={published.config["problem_type"]!r}, and '
            'classifiers here give an image one class; give another model'
        )
    names = published.names
    if names and len(names) != rows:
        raise ConfigError(
            f'its config.json names {len(names)} classes in id2label, and its classifier has '
            f'{rows}; give the complete folder'
        )
    told = [names.get(i, f'{DEFAULT_NAME}{i}') for i in range(rows)]
    unnamed = all(name.startswith(DEFAULT_NAME) for name in told)
    return (unnamed and imagenet_names(rows)) or told


def segmentor_settings(
    model: Mapping[str, Any],
    classes: Sequence[str],
    *,
    size: tuple[int, int],
    mean: Sequence[float],
    std: Sequence[float],
) -> Section:
    """The config of a segmentor of MMSegmentation, whose windows slide over images.

    Args:
        model, classes: see :func:`detector_settings`.
        size, mean, std: see ``Published.pixels``. The width becomes the shorter side.
    """
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(16 * size[0], size[0]), keep_ratio=True),
        dict(type='PackSegInputs'),
    ]
    model = dict(
        model, data_preprocessor=dict(type='SegDataPreProcessor', **bgr_normalization(mean, std))
    )
    return _settings('mmseg', model, dict(type='BaseSegDataset'), classes, pipeline)


def _settings(
    scope: str,
    model: Section,
    dataset: Mapping[str, Any],
    classes: Sequence[str],
    pipeline: list,
) -> Section:
    dataset = dict(dataset, metainfo=dict(classes=list(classes)), pipeline=pipeline)
    return dict(
        default_scope=scope,
        custom_imports=dict(imports=['vit_plugin.detection']),
        model=model,
        test_dataloader=dict(batch_size=1, num_workers=2, dataset=dataset),
    )


def bgr_normalization(mean: Sequence[float], std: Sequence[float]) -> Section:
    """Arguments of a preprocessor for BGR images, from a normalization of RGB in 0 to 1."""
    means, deviations = ([round(255 * x, 3) for x in values] for values in (mean, std))
    return dict(mean=means, std=deviations, bgr_to_rgb=True)
