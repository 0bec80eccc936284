"""What the file of a model that others publish says of it, and the config of the same model here.

It says so by the ``config.json`` beside it, by the settings that its training saved, or by its
names and shapes. Projects read it, see :attr:`vit_plugin.project.Project.published`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from annotated_types import Len
from mmengine.logging import print_log
from timm.data import (
    IMAGENET_DEFAULT_MEAN,
    IMAGENET_DEFAULT_STD,
    ImageNetInfo,
    infer_imagenet_subset,
)

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError

from .foreign_config import ConfigKind, ForeignConfig
from .opening import Checkpoint
from .reading.lazy import Lazy, Weights
from .recognition import Recognized, recognize, unwrapped

Colors = Annotated[Sequence[float], Len(3, 3)]
LIGHTNING = 'model.'  # before each name
DEFAULT_NAME = 'LABEL_'  # of a class, in transformers
COCO_ROWS = (91, 90, 80)  # of classification layers
NO_CLASS = ('N/A', '__background__')  # rows of COCO's 91 that are no class
# What a test runs on, until it is told of other data.
COCO = dict(
    type='CocoDataset',
    data_root='data/coco/',
    ann_file='annotations/instances_val2017.json',
    data_prefix=dict(img='val2017/'),
    test_mode=True,
)


class Published:
    """What a file says of its model. All of it is data of an unknown person.

    Attributes:
        weights: by their own names.
        config: the ``config.json`` of transformers.
        processor: its ``preprocessor_config.json``, or that of images in ``processor_config.json``.
        settings: what the training saved of its own settings.
        saved: the same, by the entry of the file that has it.
        read: the configs that a reader has begun to read.
        unused: beginnings of our names of weights that the model here does not have.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.weights = bare(checkpoint.weights)
        self.config = checkpoint.beside.get('config', {})
        of_images_and_text = checkpoint.beside.get('processor_config', {})
        self.processor = checkpoint.beside.get('preprocessor_config') or told(
            of_images_and_text, 'image_processor', Mapping, {}
        )
        content = checkpoint.content if isinstance(checkpoint.content, dict) else {}
        self.read: list[ForeignConfig] = []
        self.unused: set[str] = set()
        self.settings, self.saved = Section(), dict[str, Section]()
        for name in ('hyper_parameters', 'args', 'model_config'):  # the last counts most
            saved = content.get(name)
            saved = saved if isinstance(saved, Mapping) else getattr(saved, '__dict__', {})
            self.saved[name] = {key: value for key, value in saved.items() if value is not None}
            self.settings |= self.saved[name]

    @property
    def kind(self) -> str:
        """The ``model_type`` of a config of transformers, or nothing."""
        return str(self.config.get('model_type', ''))

    def described_by(self, kind: ConfigKind, *classes: str) -> ForeignConfig | None:
        """The ``config.json``. What no reader reads of it is an error in the end.

        Args:
            kind: the fields that it may have.
            classes: of transformers, whose models are read. None is returned for one of another.
        """
        config = ForeignConfig(self.config, kind)
        if not {*(config.get('architectures', Sequence[str] | None) or classes)} <= {*classes}:
            return None
        self.read.append(config)
        return config

    @cached_property
    def ours(self) -> Recognized:
        """The weights by our names."""
        return recognize(self.weights)

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of an array, by its own name or by ours.

        Raises:
            ConfigError: if it is not there.
        """
        weights = self.weights if key in self.weights else self.ours
        if key not in weights:
            raise ConfigError(f'it lacks {key}; give the complete file')
        return tuple(weights[key].shape)

    def count(self, start: str) -> int:
        """The number of parts ``{start}0``, ``{start}1``, and so on, by their own names or ours."""
        names = (*self.weights, *self.ours)
        found = (name.removeprefix(start) for name in names if name.startswith(start))
        return len({rest.partition('.')[0] for rest in found})

    def pixels(self, usual: int | Sequence[int]) -> Section:
        """Width and height of the images, and mean and deviation of their colors from 0 to 1.

        What the file does not say is this side or height and width, and ImageNet's colors.
        """
        high, wide = (usual, usual) if isinstance(usual, int) else usual
        size = told(self.processor, 'size', Mapping, {})
        mean, std = (
            told(self.processor, f'image_{name}', Colors, values)
            for name, values in (('mean', IMAGENET_DEFAULT_MEAN), ('std', IMAGENET_DEFAULT_STD))
        )
        sides = (('width', wide), ('height', high))
        wide, high = (told(size, name, PositiveInt, side) for name, side in sides)
        return dict(size=(wide, high), mean=mean, std=std)

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of the classes by their numbers, as far as they are told.

        As many default names as COCO has classes are none.
        """
        labels = told(self.config, 'id2label', Mapping, {})
        pairs = {int(key): name for key, name in labels.items() if str(key).isdecimal()}
        if (pairs and fits(dict[int, str], pairs)) and not (
            len(pairs) in COCO_ROWS
            and all(name.startswith(DEFAULT_NAME) for name in pairs.values())
        ):
            return pairs
        return dict(enumerate(told(self.settings, 'class_names', Sequence[str], ())))


def told(source: Any, name: str, kind: Any, default: Any) -> Any:
    """An entry of a dict, or the default where it is not there or of another type."""
    value = source.get(name) if isinstance(source, Mapping) else None
    return value if value is not None and fits(kind, value) else default


def bare(weights: Weights) -> Weights:
    """The weights without the prefixes of torch's wrappers and of a LightningModule's model."""
    weights = unwrapped(weights)
    if not all(name.startswith(LIGHTNING) for name in weights):
        return weights
    return Lazy(
        [name.removeprefix(LIGHTNING) for name in weights], lambda name: weights[LIGHTNING + name]
    )


class Classes:
    """The classes of a detector and the rows of its classification layers that have none.

    Args:
        rows: number of rows.
        names: of the rows that are told. None: COCO's, if the number is one of theirs, else the
            numbers.
    """

    def __init__(self, rows: int, names: Mapping[int, str]) -> None:
        coco = coco_names()
        known = [name for name in coco if name not in NO_CLASS]
        if not names or (rows == len(coco) and [*names.values()] == known):
            by_rows = {len(coco): coco, len(coco) - 1: coco[1:], len(known): known}
            if rows in by_rows:
                print_log(f"The classes are taken as COCO's, since there are {rows}.", 'current')
            numbers = [f'class {i}' for i in range(max(rows - 1, 1))]  # the last is no class
            names = dict(enumerate(by_rows.get(rows, numbers)))
        used = {i: names[i] for i in range(rows) if names.get(i, NO_CLASS[0]) not in NO_CLASS}
        self.names = list(used.values())
        self.unused = [row for row in range(rows) if row not in used]


def coco_names() -> list[str]:
    """The names of COCO's 91 categories by their numbers. Those that are none are ``NO_CLASS``."""
    from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights

    return list(FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta['categories'])


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
        size, mean, std: see :meth:`Published.pixels`.
        masks: whether it predicts masks, too.
        padded: images keep their ratio, and are padded to a multiple of it.
    """
    pixels = dict(type='DetDataPreprocessor', pad_mask=masks, **normalization(mean, std))
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
    colors: Mapping[str, Sequence[float]],
) -> Section:
    """The config of a classifier of MMPretrain, or of an encoder if it has no head.

    Args:
        model: ``model`` without its preprocessor.
        classes: the names of its classes.
        steps: of a test, between the pixels of a file and the model's.
        colors: ``mean`` and ``std`` of RGB from 0 to 255.
    """
    model = dict(model, data_preprocessor=dict(colors, to_rgb=True))
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    dataset = dict(type='CustomDataset', metainfo=dict(classes=list(classes)), pipeline=pipeline)
    loader = dict(batch_size=1, num_workers=2, dataset=dataset)
    return dict(default_scope='mmpretrain', model=model, test_dataloader=loader)


def imagenet_names(count: int) -> list[str]:
    """ImageNet's names of as many classes, which the log says; none for other numbers."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    if not subset:
        return []
    print_log(f"The classes are taken as ImageNet's, since there are {count}.", 'current')
    return list(ImageNetInfo(subset).label_descriptions())


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
        size, mean, std: see :meth:`Published.pixels`. The width becomes the shorter side.
    """
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(16 * size[0], size[0]), keep_ratio=True),
        dict(type='PackSegInputs'),
    ]
    model = dict(
        model, data_preprocessor=dict(type='SegDataPreProcessor', **normalization(mean, std))
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


def normalization(mean: Sequence[float], std: Sequence[float]) -> Section:
    """Arguments of a preprocessor for images in BGR, from the colors of RGB from 0 to 1."""
    means, deviations = ([round(255 * value, 3) for value in each] for each in (mean, std))
    return dict(mean=means, std=deviations, bgr_to_rgb=True)
