"""Third-party checkpoint metadata, from which projects build the config of the same model here.

It comes from the ``config.json`` next to the file, the settings that its training saved, or the
names and shapes of its tensors. Projects read it, see :attr:`vit_plugin.project.Project.published`.
They must read, require or ignore each field of the ``config.json``, see
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`: one that affects the model and is left
over is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Annotated, Any

from annotated_types import Len
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError

from .foreign_config import SHORT, ConfigKind, ForeignConfig
from .opening import Checkpoint
from .reading.lazy import Weights
from .recognition import Recognized, recognize, rename_weights, without_wrapper_prefixes

RgbFloats = Annotated[Sequence[float], Len(3, 3)]
# Prefixes of all names in a file whose model is an attribute: of a LightningModule, or of the
# TimmWrapper of transformers.
MODEL_PREFIXES = ('model.', 'timm_model.')
DEFAULT_CLASS_PREFIX = 'LABEL_'  # beginning of transformers' default class names


class Published:
    """The metadata of a third-party checkpoint. All of it is untrusted data.

    Attributes:
        source: the source of the file, as the user wrote it.
        weights: the weights, by their own names.
        config: the ``config.json`` of transformers, or another library's config in its terms.
        config_subject: what has its entries, as the first words of a message.
        open_clip: the ``open_clip_config.json``.
        processor: its ``preprocessor_config.json``, or the part for images in
            ``processor_config.json``.
        settings: the settings that the training saved.
        saved: the same settings, by their entry in the file.
        read_configs: the configs that readers have accessed, whose fields are checked afterwards.
        unused: beginnings of our names of weights that the model does not have.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.source, self.weights = checkpoint.source, without_training_prefixes(checkpoint.weights)
        self.config = checkpoint.hub_configs.get('config', {})
        self.config_subject = 'its config.json'
        self.open_clip = checkpoint.hub_configs.get('open_clip_config', {})
        image_and_text_config = checkpoint.hub_configs.get('processor_config', {})
        self.processor = checkpoint.hub_configs.get('preprocessor_config') or get_typed(
            image_and_text_config, 'image_processor', Mapping, {}
        )
        content = checkpoint.content if isinstance(checkpoint.content, dict) else {}
        self.read_configs: list[ForeignConfig] = []
        self.unused: set[str] = set()
        self.settings, self.saved = Section(), dict[str, Section]()
        for name in ('hyper_parameters', 'args', 'model_config'):  # the last one takes precedence
            saved = content.get(name)
            saved = saved if isinstance(saved, Mapping) else getattr(saved, '__dict__', {})
            self.saved[name] = {key: value for key, value in saved.items() if value is not None}
            self.settings |= self.saved[name]

    @property
    def model_type(self) -> str:
        """The ``model_type`` of a config of transformers, or ''."""
        return str(self.config.get('model_type', ''))

    def described_by(self, config_kind: ConfigKind, *classes: str) -> ForeignConfig | None:
        """The ``config.json`` as a :class:`ForeignConfig`.

        Entries that the reader leaves unread are an error, see
        :func:`~vit_plugin.weights.published_run.as_run`.

        Args:
            config_kind: its allowed fields.
            classes: the supported classes of transformers. For any other, None is returned.
        """
        config = ForeignConfig(self.config, config_kind, self.config_subject)
        if not {*(config.get('architectures', Sequence[str] | None) or classes)} <= {*classes}:
            return None
        self.read_configs.append(config)
        return config

    def described_as(
        self,
        config: Mapping[str, Any],
        processor: Mapping[str, Any],
        weights: Weights,
        subject: str,
    ) -> 'Published':
        """The same checkpoint in the terms of another library.

        What a reader finds out about it also counts for this one: the configs that it reads, and
        the weights that the model does not have.

        Args:
            config, processor: the files as that library would have written them.
            weights: those of the model.
            subject: what has the entries of ``config``, as the first words of a message.
        """
        other = copy(self)
        other.__dict__.pop('ours', None)  # the cached property
        other.config, other.config_subject = config, subject
        other.processor, other.weights, other.open_clip = processor, weights, {}
        return other

    @cached_property
    def ours(self) -> Recognized:
        """The weights by our names, in the format that they are recognized as."""
        return recognize(self.weights)

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of an array, by its own name or by ours.

        Raises:
            ConfigError: if it is missing.
        """
        weights = self.weights if key in self.weights else self.ours
        if key not in weights:
            raise ConfigError(f'it lacks {key}; give the complete file')
        return tuple(weights[key].shape)

    def count(self, start: str) -> int:
        """The number of modules ``{start}0``, ``{start}1``, ..., by their own names or ours.

        For example, ``count('blocks.')`` is the number of blocks.
        """
        names = (*self.weights, *self.ours)
        ends = (name.removeprefix(start) for name in names if name.startswith(start))
        return len({end.partition('.')[0] for end in ends})

    def pixels(self, default: int | Sequence[int], normalized: bool = True) -> Section:
        """Width and height of the images, and mean and standard deviation (of 0 to 1).

        A normalization without stated values is ImageNet's. Without any, the mean is 0 and the
        standard deviation 1.

        Args:
            default: the side, or height and width, if the file states no size.
            normalized: whether images are normalized if the file has no ``do_normalize``.
        """
        height, width = (default, default) if isinstance(default, int) else default
        size = get_typed(self.processor, 'size', Mapping, {})
        mean = get_typed(self.processor, 'image_mean', RgbFloats, IMAGENET_DEFAULT_MEAN)
        std = get_typed(self.processor, 'image_std', RgbFloats, IMAGENET_DEFAULT_STD)
        if not get_typed(self.processor, 'do_normalize', bool, normalized):
            mean, std = (0.0,) * 3, (1.0,) * 3
        width = get_typed(size, 'width', PositiveInt, width)
        height = get_typed(size, 'height', PositiveInt, height)
        return dict(size=(width, height), mean=mean, std=std)

    @cached_property
    def names(self) -> dict[int, str]:
        """The stated class names, by number.

        Raises:
            ConfigError: if they do not map numbers to names.
        """
        labels = self.config.get('id2label') or {}
        numbered = isinstance(labels, Mapping) and all(str(key).isdecimal() for key in labels)
        pairs = {int(key): name for key, name in labels.items()} if numbered else {}
        if not numbered or not fits(dict[int, str], pairs):
            raise ConfigError(
                f'its config.json has id2label={SHORT.repr(labels)}, where names by numbers are '
                'expected; correct it'
            )
        return pairs or dict(enumerate(get_typed(self.settings, 'class_names', Sequence[str], ())))


def get_typed(source: Any, name: str, annotation: Any, default: Any) -> Any:
    """An entry of a dict, or the default if it is missing or of another type.

    Args:
        source: the dict. Anything else has no entries.
        name: the key of the entry.
        annotation: its type.
        default: the default.
    """
    value = source.get(name) if isinstance(source, Mapping) else None
    return value if value is not None and fits(annotation, value) else default


def without_training_prefixes(weights: Weights) -> Weights:
    """The weights without the prefixes of torch's wrappers, and of a module around the model."""
    weights = without_wrapper_prefixes(weights)
    for prefix in MODEL_PREFIXES:
        if all(name.startswith(prefix) for name in weights):
            return rename_weights(weights, {name.removeprefix(prefix): name for name in weights})
    return weights


def are_default_names(classes: Iterable[str]) -> bool:
    """True if all class names are those that transformers gives to classes without a name."""
    return all(name.startswith(DEFAULT_CLASS_PREFIX) for name in classes)


def without_model_prefix(name: str) -> str:
    """The name of a weight without one of :data:`MODEL_PREFIXES`."""
    prefix = next(filter(name.startswith, MODEL_PREFIXES), '')
    return name.removeprefix(prefix)
