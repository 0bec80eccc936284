"""Third-party checkpoint metadata.

It comes from the ``config.json`` beside the file, the settings that its training saved, or the
names and shapes of its tensors. Projects read it, see :attr:`vit_plugin.project.Project.published`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from annotated_types import Len
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError

from .foreign_config import SHORT, ConfigKind, ForeignConfig
from .opening import Checkpoint
from .reading.lazy import Lazy, Weights
from .recognition import Recognized, recognize, without_wrapper_prefixes

Colors = Annotated[Sequence[float], Len(3, 3)]
LIGHTNING = 'model.'  # before each name
DEFAULT_NAME = 'LABEL_'  # transformers' default class name
COCO_ROWS = (91, 90, 80)  # numbers of class rows for COCO


class Published:
    """What a file says of its model. All of it is data of an unknown person.

    Attributes:
        source: where the file is, as the user wrote it.
        weights: by their own names.
        config: the ``config.json`` of transformers.
        processor: its ``preprocessor_config.json``, or that of images in ``processor_config.json``.
        settings: what the training saved of its own settings.
        saved: the same, by the entry of the file that has it.
        read: the configs that a reader has begun to read.
        unused: beginnings of our names of weights that the model here does not have.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.source, self.weights = checkpoint.source, strip_backbone_prefix(checkpoint.weights)
        self.config = checkpoint.beside.get('config', {})
        of_images_and_text = checkpoint.beside.get('processor_config', {})
        self.processor = checkpoint.beside.get('preprocessor_config') or get_typed(
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

    def pixels(self, usual: int | Sequence[int], normalized: bool = True) -> Section:
        """Width and height of the images, and mean and deviation of their colors from 0 to 1.

        What the file does not say is this side or height and width, and ImageNet's colors.

        Args:
            usual: see above.
            normalized: whether colors are normalized, if the file does not say. Else they have a
                mean of 0 and a deviation of 1.
        """
        high, wide = (usual, usual) if isinstance(usual, int) else usual
        size = get_typed(self.processor, 'size', Mapping, {})
        mean, std = (
            get_typed(self.processor, f'image_{name}', Colors, values)
            for name, values in (('mean', IMAGENET_DEFAULT_MEAN), ('std', IMAGENET_DEFAULT_STD))
        )
        if not get_typed(self.processor, 'do_normalize', bool, normalized):
            mean, std = (0.0,) * 3, (1.0,) * 3
        sides = (('width', wide), ('height', high))
        wide, high = (get_typed(size, name, PositiveInt, side) for name, side in sides)
        return dict(size=(wide, high), mean=mean, std=std)

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of the classes by their numbers, as far as they are told.

        As many default names as COCO has classes are none.

        Raises:
            ConfigError: if they are no names by numbers.
        """
        labels = self.config.get('id2label') or {}
        numbered = isinstance(labels, Mapping) and all(str(key).isdecimal() for key in labels)
        pairs = {int(key): name for key, name in labels.items()} if numbered else {}
        if not numbered or not fits(dict[int, str], pairs):
            raise ConfigError(
                f'its config.json has id2label={SHORT.repr(labels)}, where names by numbers are '
                'expected; mend it'
            )
        if pairs and not (
            len(pairs) in COCO_ROWS
            and all(name.startswith(DEFAULT_NAME) for name in pairs.values())
        ):
            return pairs
        return dict(enumerate(get_typed(self.settings, 'class_names', Sequence[str], ())))


def get_typed(source: Any, name: str, kind: Any, default: Any) -> Any:
    """An entry of a dict, or the default where it is not there or of another type."""
    value = source.get(name) if isinstance(source, Mapping) else None
    return value if value is not None and fits(kind, value) else default


def strip_backbone_prefix(weights: Weights) -> Weights:
    """The weights without the prefixes of torch's wrappers and of a LightningModule's model."""
    weights = without_wrapper_prefixes(weights)
    if not all(name.startswith(LIGHTNING) for name in weights):
        return weights
    return Lazy(
        [name.removeprefix(LIGHTNING) for name in weights], lambda name: weights[LIGHTNING + name]
    )
