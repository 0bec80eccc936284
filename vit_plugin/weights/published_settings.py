"""Build the MMEngine config around a published model: classes, preprocessing, test pipeline."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.logging import print_log
from timm.data import ImageNetInfo, infer_imagenet_subset

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .published import DEFAULT_CLASS_PREFIX, Published, are_default_names

# Placeholder data set for the test of detectors, until other data is given.
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
    pad_divisor: int | None = None,
) -> Section:
    """The config of a detector of MMDetection, with a test pipeline that resizes images.

    Args:
        model: ``model`` without its preprocessor.
        classes: the names of its classes.
        size: (width, height) of resized images; with ``pad_divisor``, the limits of their longer
            and shorter side.
        mean, std: see ``Published.pixels``.
        masks: whether it also predicts masks.
        pad_divisor: keep the aspect ratio of images, and pad their sides to multiples of this.
            None: images are stretched.
    """
    pixels = dict(type='DetDataPreprocessor', pad_mask=masks, **bgr_normalization(mean, std))
    if pad_divisor:
        pixels['pad_size_divisor'] = pad_divisor
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=tuple(size), keep_ratio=pad_divisor is not None),
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
    """ImageNet's class names (logged) if one of its sets has this number, else []."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    if not subset:
        return []
    print_log(f"The classes are taken as ImageNet's, since there are {count}.", 'current')
    return list(ImageNetInfo(subset).label_descriptions())


def class_names(published: Published, rows: int) -> list[str]:
    """The class names of a classifier: in the config, else ImageNet's (logged), else numbered.

    Args:
        published: the checkpoint's metadata.
        rows: rows of the classifier's weight.

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
    classes = [names.get(i, f'{DEFAULT_CLASS_PREFIX}{i}') for i in range(rows)]
    if are_default_names(classes):
        return imagenet_names(rows) or classes
    return classes


def segmentor_settings(
    model: Mapping[str, Any],
    classes: Sequence[str],
    *,
    size: tuple[int, int],
    mean: Sequence[float],
    std: Sequence[float],
) -> Section:
    """The config of a segmentor of MMSegmentation, whose test keeps the aspect ratio of images.

    Args:
        model: ``model`` without its preprocessor. Its ``test_cfg`` chooses between whole images
            and sliding-window inference.
        classes: the names of its classes.
        size: (width, height). The shorter side of images is resized to this width.
        mean, std: see ``Published.pixels``.
    """
    pipeline = [
        dict(type='LoadImageFromFile'),
        # The longer side is only limited for images more than 16 times as long as wide.
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
    """The entries that the configs of detectors and segmentors share."""
    dataset = dict(dataset, metainfo=dict(classes=list(classes)), pipeline=pipeline)
    return dict(
        default_scope=scope,
        custom_imports=dict(imports=['vit_plugin.detection']),
        model=model,
        test_dataloader=dict(batch_size=1, num_workers=2, dataset=dataset),
    )


def bgr_normalization(mean: Sequence[float], std: Sequence[float]) -> Section:
    """Arguments of a preprocessor that takes BGR images, as OpenCV reads them.

    Args:
        mean, std: the normalization of RGB images in [0, 1].
    """
    means, deviations = ([round(255 * x, 3) for x in values] for values in (mean, std))
    return dict(mean=means, std=deviations, bgr_to_rgb=True)
