"""The starting point of a training: the model, its weights, and their preprocessing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from vit_plugin.arch import parse_arch
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.models import TimmEmbed, VisionTransformer
from vit_plugin.models.layers.map_sizes import find_size_mismatch, maps_of
from vit_plugin.registry import MODELS as PLUGIN_MODELS
from vit_plugin.weights.hub import is_of_hub
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.published_run import as_run
from vit_plugin.weights.saved_settings import (
    saved_backbone,
    saved_neck,
    training_settings,
)
from vit_plugin.weights.wrapped_model import wrapped_model
from vit_plugin.zoo.data_config import data_config_of

from .continued import DEFAULT_ARCH, ContinuedModel, read_continued_model
from .small_hybrids import small_hybrid

POOLED_OUT_TYPES = ('cls_token', 'avg_featmap')  # outputs that a classifier uses without a neck


@dataclass(frozen=True)
class StartingPoint:
    """The model that a training starts from.

    A *wrapped* backbone is a module of timm or transformers, computed by that library. A
    *continued* model is a complete one, whose neck and head are kept, too. *Opened* weights have
    been read, with their config if they have one.

    Attributes:
        arch: see :func:`vit_plugin.arch.parse_arch`. Empty: that of the weights, or one of
            :data:`~.small_hybrids.SMALL_HYBRIDS`.
        weights: a file, folder, URL or name on a hub, see :class:`~.request.Request`. None: from
            scratch.
        hybrid_range: the keys of the first and last of the small hybrids that fit the task, see
            :func:`~.small_hybrids.small_hybrid`.
        continued_tasks: the tasks whose complete models are accepted as weights.

    Raises:
        ConfigError: if the arch is unknown, or if the weights do not name their model.
    """

    arch: str
    weights: str | None
    hybrid_range: tuple[int, int]
    continued_tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.wrapped:
            return
        if is_of_hub(self.arch):
            raise ConfigError(
                f'--arch {self.arch!r} is not an encoder, or is one that this package computes '
                'itself; give it as --weights to start from its weights, or its size as --arch, '
                'such as B/16.'
            )
        if self.arch:
            parse_arch(self.arch)
        elif self.weights and not (self.continued or self.saved_backbone):
            from vit_plugin.weights.unread_kinds import reject_unread_kind

            reject_unread_kind(self.opened)
            raise ConfigError(
                f'--weights {self.weights!r} do not name their model; give it by --arch, such as '
                'R50+B/16.'
            )

    def wrapped_error(self, what: str) -> ConfigError:
        """Make the error for a wrapped backbone where a ``VisionTransformer`` is needed.

        Args:
            what: what needs one, the subject of the message.
        """
        class_name = self.wrapped['type'].removeprefix('vit_plugin.')
        return ConfigError(
            f'{what} needs a VisionTransformer, but {self.arch or self.weights} is computed by '
            f'{class_name}; give the --arch or --weights of a ViT.'
        )

    @property
    def from_scratch(self) -> bool:
        """True if the training begins without weights."""
        return self.weights is None

    @property
    def is_small(self) -> bool:
        """True if the model is one of :data:`~.small_hybrids.SMALL_HYBRIDS`."""
        return not (self.arch or self.weights)

    @property
    def schedule_key(self) -> str:
        """The key into a task's schedules.

        - ``small``: a small hybrid from scratch,
        - ``scratch``: another model from scratch,
        - ``stem``: new blocks on a stem with weights,
        - ``fine_tuned``: a backbone or complete model with weights.
        """
        if self.is_small:
            return 'small'
        if self.from_scratch:
            return 'scratch'
        return 'stem' if self.has_only_stem_weights else 'fine_tuned'

    @cached_property
    def has_only_stem_weights(self) -> bool:
        """True if the weights are only those of the stem's CNN, and the blocks are new."""
        if self.wrapped or not (self.arch and self.weights):
            return False
        stem = self.build_meta_backbone(0).patch_embed
        if not isinstance(stem, TimmEmbed):
            return False
        return stem.is_cnn_checkpoint(open_checkpoint(self.weights).weights)

    @property
    def title(self) -> str:
        """The model's name in a sentence."""
        return self.arch or ('A small hybrid' if self.is_small else f'The model of {self.weights}')

    def backbone(self, size: int) -> Section:
        """The backbone's arguments, except its image size, for images with this shorter side."""
        if self.wrapped:
            return {**self.wrapped}
        if self.arch:
            return dict(arch=self.arch)
        if self.weights:
            saved = self.saved_backbone
            pooled = 'cls_token' if saved.get('with_cls_token', True) else 'avg_featmap'
            out_type = saved.get('out_type')
            return {**saved, 'out_type': out_type if out_type in POOLED_OUT_TYPES else pooled}
        return dict(
            small_hybrid(size, self.hybrid_range), with_cls_token=False, out_type='avg_featmap'
        )

    @cached_property
    def opened(self) -> Any:
        """The source of settings: the opened checkpoint. A published model is opened as a run.

        If ``arch`` names the model, it is the name of the weights as given. None without weights.
        """
        if self.arch or not self.weights:
            return self.weights
        checkpoint = self._checkpoint
        return as_run(checkpoint) if checkpoint and not self.wrapped else checkpoint

    @cached_property
    def _checkpoint(self) -> Checkpoint | None:
        """The weights, opened unless an arch names their model."""
        return open_checkpoint(self.weights) if self.weights and not self.arch else None

    @cached_property
    def wrapped(self) -> Section:
        """The backbone of another library, see :func:`~vit_plugin.weights.wrapped_model`; or {}."""
        return wrapped_model(self.arch, self._checkpoint)

    @cached_property
    def pooled_output(self) -> Section:
        """The arguments with which a wrapped backbone returns its classifier's input, or {}."""
        pooled: Section = dict(out_type='pooled')
        try:
            self.build_meta_backbone(0, **pooled)
        except ConfigError:  # it has no classifier, so its last map is averaged instead
            return {}
        return pooled

    @property
    def is_wrapped_classifier(self) -> bool:
        """True for another library's backbone that has a classifier."""
        return bool(self.wrapped and self.pooled_output)

    @cached_property
    def wrapped_classes(self) -> list[str]:
        """The class names of another library's classifier in the weights; empty if unknown."""
        checkpoint = self._checkpoint
        if not (self.is_wrapped_classifier and checkpoint):
            return []
        return list(as_run(checkpoint).dataset_meta.get('classes') or ())

    @cached_property
    def saved_settings(self) -> Section:
        """The weights' image settings.

        See :func:`~vit_plugin.weights.saved_settings.training_settings`.
        """
        return training_settings(self.opened)

    @cached_property
    def continued(self) -> ContinuedModel | None:
        """The complete model in the weights, if its task is one of ``continued_tasks``."""
        if not (self.continued_tasks and self.weights) or self.arch or self.wrapped:
            return None
        complete = read_continued_model(self.opened)
        return complete if complete and {*complete.tasks} & {*self.continued_tasks} else None

    @cached_property
    def saved_backbone(self) -> Section:
        """The arguments of the backbone in a checkpoint, or {}.

        The backbone is built once, to check the arguments before they go into a config.
        """
        arguments = saved_backbone(self.opened)
        if arguments:
            with torch.device('meta'):
                VisionTransformer(**arguments)
            arguments.setdefault('arch', DEFAULT_ARCH)
        return arguments

    @cached_property
    def neck(self) -> Section:
        """The token pooling after the backbone in the weights, or {}."""
        return {} if self.arch or self.from_scratch or self.wrapped else saved_neck(self.opened)

    @cached_property
    def pixels(self) -> Section:
        """The preprocessing, see :func:`~vit_plugin.zoo.data_config.data_config_of`."""
        return data_config_of(self.arch, self.opened)

    @property
    def normalization(self) -> Section:
        """``mean`` and ``std`` in RGB, from 0 to 255, for a ``data_preprocessor``."""
        return {
            key: [round(255 * value, 3) for value in self.pixels[key]] for key in ('mean', 'std')
        }

    def native_size(self) -> int:
        """The longer side in pixels of the images that the weights or the arch were trained on."""
        if self.wrapped:
            return max(self.build_meta_backbone(0, **self.pooled_output).img_size)
        name = self.weights if str(self.weights).startswith('timm://') else self.arch
        size = (
            parse_arch(name or self.saved_backbone['arch'])
            .complete(img_size=self.saved_settings.get('img_size'))
            .img_size
        )
        return size if isinstance(size, int) else max(size)

    def patch_side(self, size: int) -> int:
        """The side of a patch in pixels, for images with this shorter side.

        It is 1 for a continued model, which pads images of any size.
        """
        if self.wrapped:
            return self.build_meta_backbone(size).strides[-1]
        return 1 if self.continued else self.build_meta_backbone(size).patch_embed.stride

    def for_size(self, arguments: Section, img_size: Any, sizes_vary: bool = False) -> Section:
        """Arguments of the backbone for images of a size.

        A wrapped backbone is tried on the meta device. If it rejects the images, and is one of
        timm's, it gets their size, too.

        Args:
            arguments: the other arguments of the backbone.
            img_size: height and width of the images, or the side of square ones, in pixels.
            sizes_vary: whether images of other sizes occur, so that maps must scale with the image.

        Raises:
            ConfigError: if a backbone of another library does not take these images.
        """
        sized = dict(arguments, img_size=img_size)
        if not self.wrapped:
            return sized
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        takes_size = not sizes_vary and 'Timm' in arguments['type']  # TimmBackbone
        for candidate in (arguments, sized) if takes_size else (arguments,):
            backbone = self.build_meta_backbone(0, **candidate)
            if sizes_vary and (other := find_size_mismatch(backbone, backbone.strides)):
                raise ConfigError(f'{self.title} returns {other}; take another for boxes or masks.')
            if maps_of(backbone, backbone.in_channels, height, width):
                return candidate
        native_height, native_width = backbone.img_size
        if sizes_vary:
            remedy = 'take another for boxes or masks'
        elif native_height == native_width:
            remedy = f'give --img-size {native_height}'
        else:
            remedy = 'take another, since classification uses square images'
        raise ConfigError(
            f'{self.title} takes images of {native_height} x {native_width} pixels, not of '
            f'{height} x {width}; {remedy}.'
        )

    def build_meta_backbone(self, size: int, **arguments: Any) -> Any:
        """Build the backbone on the meta device, without memory for its weights.

        Args:
            size: the shorter side of the images, which chooses the small hybrid; 0 where any will
                do.
            **arguments: further arguments of the backbone.
        """
        cfg = dict(type='vit_plugin.VisionTransformer') | self.backbone(size) | arguments
        with torch.device('meta'):
            return PLUGIN_MODELS.build(cfg)
