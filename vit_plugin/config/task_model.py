"""The models that ``vit-plugin train --data FOLDER --model NAME`` can train, and how to size them.

A :class:`TaskModel` builds the config of a model from the :class:`ModelFacts` of the data and the
backbone. Models with the frameworks' own heads are defined in ``tasks``, or in ``from_folder`` if
several tasks have them. A project declares its own, see
:attr:`vit_plugin.project.Project.models`. "Maps" are feature maps here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

FINEST_STRIDE = 8  # pixels: stride of the finest map of a detector
MAX_GLOBAL_GRID = 32  # patches along a side; in larger images, attention is within windows
WINDOW = 14  # patches along the side of a window
# Channels of the maps after a neck: RetinaNet's, and those of the recipe for BCCD.
WIDE_MAPS, NARROW_MAPS = 256, 96
# Channels of a backbone from which on heads have the width of their papers.
MIN_WIDE_CHANNELS = 384
NORM: Section = dict(type='GN', num_groups=16)  # for small batches
MAX_QUERIES = 900  # DINO's number
MASK2FORMER_POINTS = 112 * 112  # points at which Mask2Former compares masks


def mask_points_for(size: Sequence[int]) -> int:
    """The number of points at which a loss compares the masks of images of a size.

    It is Mask2Former's, or one point for every 4 x 4 pixels in smaller images.
    """
    return min(MASK2FORMER_POINTS, math.prod(size) // 16)


@dataclass(frozen=True)
class ModelFacts:
    """The facts about data and backbone that are known before a model's config is written.

    Attributes:
        classes: number of classes.
        size: height and width of the images in pixels, as multiples of 32.
        arguments: arguments of the backbone except its output, with its type unless it is a
            VisionTransformer.
        build: (changes of these arguments) -> the backbone, without memory for its weights.
        windows: whether the blocks attend within windows where images are large.
        objects: the largest number of objects in an image.
        anchor: side of the smallest anchor on a map, in strides of this map.
        levels: the number of maps that have anchors.
        stuff: for panoptic data, the number of stuff classes, which come last.
        task_facts: facts about the data that only one task knows, by name.
    """

    classes: int
    size: tuple[int, int]
    arguments: Mapping[str, Any]
    build: Callable[..., Any]
    windows: bool = False
    objects: int = 0
    anchor: int = 4
    levels: int = 5
    stuff: int | None = None
    task_facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def meta_backbone(self) -> Any:
        """The backbone, built on the meta device with all of its maps."""
        return self.build(out_type='pyramid')

    @property
    def is_wide(self) -> bool:
        """Whether heads have the width of their papers."""
        return self.meta_backbone.embed_dims >= MIN_WIDE_CHANNELS

    @property
    def channels(self) -> int:
        """The channels of the maps after a neck."""
        return WIDE_MAPS if self.is_wide else NARROW_MAPS

    def backbone(self, out_type: str, **changes: Any) -> Section:
        """The config of the backbone with this output, and with attention in windows if it applies.

        Windows are for large images, and for our own blocks without tokens before the patches.

        Args:
            out_type: the output.
            **changes: arguments that replace those of the backbone.
        """
        section: Section = {'type': 'vit_plugin.VisionTransformer', **self.arguments}
        is_large = max(self.size) > MAX_GLOBAL_GRID * self.meta_backbone.strides[-1]
        has_our_blocks = 'type' not in self.arguments and not str(
            self.arguments.get('arch')
        ).startswith('timm://')
        takes_windows = self.windows and is_large and has_our_blocks
        # No window can contain the tokens before the patches.
        if takes_windows and not self.meta_backbone.num_prefix_tokens:
            window = dict(size=WINDOW, global_blocks=self.depths())
            section['encoder'] = {**self.arguments.get('encoder', {}), 'window': window}
        return {**section, **changes, 'out_type': out_type}

    def depths(self, parts: int = 4) -> tuple[int, ...]:
        """The index of the last block in each of ``parts`` equal groups of blocks."""
        ends = {self.meta_backbone.num_layers * part // parts - 1 for part in range(1, parts + 1)}
        return tuple(sorted(ends - {-1}))  # with fewer blocks than groups, the first ones are empty

    def is_pyramid(self, finest: int = FINEST_STRIDE) -> bool:
        """Whether the maps from this stride on halve their size from one to the next."""
        strides = [stride for stride in self.meta_backbone.strides if stride >= finest]
        return len(strides) > 1 and all(large == 2 * small for small, large in pairwise(strides))

    def pyramid(
        self, channels: int, levels: int, finest: int = FINEST_STRIDE
    ) -> tuple[Section, Section, list[int]]:
        """The backbone, a neck that makes a pyramid of maps, and their strides.

        The neck is an FPN if the backbone's own maps are a pyramid, and otherwise ViTDet's.

        Args:
            channels: channels of the maps.
            levels: number of maps.
            finest: stride of the finest map in pixels.
        """
        if self.is_pyramid(finest):
            strides = [stride for stride in self.meta_backbone.strides if stride >= finest]
            neck = dict(
                type='FPN',
                in_channels=list(self.meta_backbone.channels),
                out_channels=channels,
                num_outs=levels,
                start_level=len(self.meta_backbone.strides) - len(strides),
                norm_cfg=NORM,
            )
            return self.backbone('pyramid'), neck, [strides[0] * 2**i for i in range(levels)]
        return self.simple_pyramid(channels, levels, finest)

    def simple_pyramid(
        self, channels: int, levels: int, finest: int = FINEST_STRIDE
    ) -> tuple[Section, Section, list[int]]:
        """Like :meth:`pyramid`, but from the last map alone (arXiv:2203.16527)."""
        stride = self.meta_backbone.strides[-1]
        scale = 2.0 ** round(math.log2(stride / finest))
        neck = dict(
            type='vit_plugin.SimpleFPN',
            in_channels=self.meta_backbone.embed_dims,
            out_channels=channels,
            num_outs=levels,
            scales=[scale / 2**i for i in range(min(levels, 4))],
            add_extra_convs=True,
        )
        return self.backbone('featmap'), neck, [round(stride / scale) * 2**i for i in range(levels)]

    def queries(
        self, name: str, least: int, strides: Sequence[int] = (), share: float = 0.5
    ) -> int:
        """The number of queries: twice the objects of the fullest image, but at least ``least``.

        There are at most :data:`MAX_QUERIES`, and no more than positions that propose boxes.

        Args:
            name: the model, for messages.
            least: the smallest number.
            strides: strides of the maps whose positions propose boxes. Empty if none do.
            share: share of these positions that lie within every image, and not in its padding.
                Half by default: an upright image in a batch of landscape images covers a bit more
                than that. 1 if images are stretched to one size.

        Raises:
            ConfigError: if an image has more objects than such positions.
        """
        number = min(max(least, 2 * self.objects), MAX_QUERIES)
        positions = sum(
            math.prod(math.ceil(side / stride) for side in self.size) for stride in strides
        )
        most = int(share * positions)
        if strides and most < max(self.objects, 1):
            raise ConfigError(
                f'--model {name}: an image has {self.objects} objects, and the maps propose {most} '
                'at most; give a larger --img-size or another --model.'
            )
        return min(number, most) if strides else number

    @property
    def class_counts(self) -> dict[str, int]:
        """The numbers of thing and stuff classes, as arguments of MMDetection's heads."""
        stuff = self.stuff or 0
        return dict(num_things_classes=self.classes - stuff, num_stuff_classes=stuff)

    @property
    def output_kinds(self) -> dict[str, bool]:
        """The outputs of a model of masks, as arguments of MMDetection's ``test_cfg``."""
        return dict(panoptic_on=self.stuff is not None, instance_on=self.stuff is None)

    @property
    def mask_points(self) -> int:
        """See :func:`mask_points_for`."""
        return mask_points_for(self.size)


# Changes of the schedule `fine_tuned` for a model with queries, whose parts all learn at one rate.
ONE_RATE: Mapping[str, Any] = dict(rate=1e-4, rate_batch=16, rate_factors={})


class TaskModel(NamedTuple):
    """A model by its name.

    Attributes:
        title: the name in a sentence, with an article.
        build: (facts) -> entries of ``model``, among them ``backbone``.
        base: the config in ``_base_/models`` of MMDetection that these entries change. Empty: they
            are the whole model.
        schedules: changed fields of the task's schedules, by
            :attr:`~vit_plugin.from_folder.starting_point.StartingPoint.schedule_key`.
        arch: default arch of the backbone. Empty: the task's default.
        side: default side in pixels of the squares that images are stretched to.
        stretched: whether images are stretched to one size.
        imports: further modules for ``custom_imports``.
        hooks: hooks for the training.
        allows_wrapped: whether the backbone may wrap a module of timm or transformers.
        saved_entries: entries that identify this model in the config of a complete checkpoint.
    """

    title: str
    build: Callable[[ModelFacts], Section]
    base: str = ''
    schedules: Mapping[str, Mapping[str, Any]] = {}
    arch: str = ''
    side: int = 0
    stretched: bool = False
    imports: tuple[str, ...] = ()
    hooks: tuple[Mapping[str, Any], ...] = ()
    allows_wrapped: bool = False
    saved_entries: Mapping[str, Any] = {}


def has_entries(model: Any, wanted: Mapping[str, Any]) -> bool:
    """Whether a section contains these entries, nested ones included."""
    return isinstance(model, Mapping) and all(
        has_entries(model.get(name), value)
        if isinstance(value, Mapping)
        else model.get(name) == value
        for name, value in wanted.items()
    )
