"""The sizes of Vision Transformers by name (``arch``), and the parser of these names.

``parse_arch('B/16')`` is a ViT-Base on 16 x 16 patches. ``parse_arch('R50+B/16')`` is the same
transformer on the feature map of a ResNet-50: its CNN is the stem, which makes the tokens. A new
variant needs one row here and its parameter count in the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, get_type_hints

from typing_extensions import Required, TypedDict

from vit_plugin.arguments import Signature, check
from vit_plugin.arguments.fields import Blocks, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows
from vit_plugin.suggestions import closest

SIZE_KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


@dataclass(frozen=True)
class Size:
    """Width, depth, heads and MLP width of a transformer encoder, with their source for readers."""

    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    source: str


SIZES = {
    'Ti': Size(192, 12, 3, 768, 'arXiv:2106.10270, Table 2'),
    'S': Size(384, 12, 6, 1536, 'arXiv:2106.10270, Table 2'),
    'B': Size(768, 12, 12, 3072, 'arXiv:2010.11929, Table 1'),
    'L': Size(1024, 24, 16, 4096, 'arXiv:2010.11929, Table 1'),
    'So400m': Size(1152, 27, 16, 4304, 'arXiv:2305.13035, Section 4; big_vision `models/vit.py`'),
    'H': Size(1280, 32, 16, 5120, 'arXiv:2010.11929, Table 1'),
    'g': Size(1408, 40, 16, 6144, 'arXiv:2106.04560, Table 2'),
    'G': Size(1664, 48, 16, 8192, 'arXiv:2106.04560, Table 2'),
}

PATCH_SIZES = (2, 4, 8, 14, 16, 32)

# Stem -> number in the variant's name -> (depth of each ResNet stage, patch size on the last map).
# From arXiv:2010.11929, Section 4.1, and google-research/vision_transformer `configs/models.py`.
# The authors write R+Ti/16, but its root (stride 4) and its 8 x 8 patches give the stride 32.
STEMS: dict[str, dict[int, tuple[tuple[int, ...], int]]] = {
    'R': {16: ((), 8)},
    'R26': {32: ((2, 2, 2, 2), 1)},
    'R50': {16: ((3, 4, 9), 1), 32: ((3, 4, 6, 3), 1)},
}

# The variants in the papers. Others can be combined in the same way ('R26+Ti/32', 'B/4').
VARIANTS = (
    'Ti/16',
    'S/32',
    'S/16',
    'B/32',
    'B/16',
    'B/8',
    'L/32',
    'L/16',
    'H/14',
    'g/14',
    'G/14',
    'R+Ti/16',
    'R26+S/32',
    'R26+B/32',
    'R50+B/16',
    'R50+L/32',
)


class ArchCfg(TypedDict, total=False):
    """A variant outside the table, see :func:`parse_arch`."""

    embed_dims: Required[PositiveInt]
    num_layers: Required[Blocks]
    num_heads: Required[PositiveInt]
    feedforward_channels: Required[PositiveInt]
    patch_size: PositiveInt
    resnet: dict[str, Any] | None


# Arguments of the backbone that a variant may set, and their defaults. `numerics` are the norms,
# activations and their eps; 'authors' are those of arXiv:2010.11929.
BACKBONE_DEFAULTS = dict(
    img_size=224,
    pos_embed='learned',
    with_cls_token=True,
    encoder={},
    numerics='authors',
    out_type='cls_token',
)


@dataclass(frozen=True)
class Arch:
    """A parsed variant: sizes of the encoder, config of the stem, and further arguments.

    Attributes:
        arguments: arguments of the backbone that differ from ``BACKBONE_DEFAULTS``.

    Raises:
        ConfigError: if the number of heads does not divide the width.
    """

    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    patch_embed: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.embed_dims % self.num_heads:
            raise ConfigError(
                f'arch: embed_dims={self.embed_dims} is not divisible by '
                f'num_heads={self.num_heads}; change one of them so that every head has the same '
                'width.'
            )

    def complete(self, **given: Any) -> SimpleNamespace:
        """The arguments in ``BACKBONE_DEFAULTS``: given, else from the variant, else the default.

        A given dict changes single entries, or replaces the value if it has a different ``type`` or
        a ``base``.

        Args:
            given: the arguments. None means not given.
        """
        completed = {
            name: self.arguments.get(name, default) for name, default in BACKBONE_DEFAULTS.items()
        }
        preset = completed['numerics']
        if isinstance(preset, str) and isinstance(given.get('numerics'), Mapping):
            completed['numerics'] = {'base': preset}  # a change keeps the rest of the preset
        for name, value in given.items():
            if value is not None:
                completed[name] = apply_change(completed[name], value)
        if isinstance(completed['pos_embed'], str):
            completed['pos_embed'] = {'type': completed['pos_embed']}
        return SimpleNamespace(**completed)


def apply_change(value: Any, change: Any) -> Any:
    """Apply a change to a value, and return the result.

    Two dicts are merged, recursively, unless the change has a ``base`` or a different ``type``.
    Anything else is replaced by the change.
    """
    if (
        not isinstance(value, Mapping)
        or not isinstance(change, Mapping)
        or 'base' in change
        or (change.get('type', value.get('type')) != value.get('type'))
    ):
        return change
    return {**value, **{key: apply_change(value.get(key), entry) for key, entry in change.items()}}


def parse_arch(arch: str | Mapping[str, Any]) -> Arch:
    """Get the sizes and the stem of a variant.

    Args:
        arch: a name or a dict. A name is ``'<size>/<patch>'`` or ``'<stem>+<size>/<patch>'``.
            ``'<size>'`` is enough if the stem is given elsewhere. Upper and lower case mean the
            same, except for g and G. The stem may be a CNN of timm: ``'resnet18+Ti/16'`` makes
            tokens of its last map with the stride 16. ``'timm://<model>'`` is a timm model, see
            :mod:`vit_plugin.zoo`. A project may add names, see
            :attr:`vit_plugin.project.Project.archs`. A dict has MMPretrain's keys ``embed_dims,
            num_layers, num_heads, feedforward_channels``. For the stem it may have ``patch_size``
            (default 16 on the image, 1 on the last map of a CNN) and ``resnet``, the arguments of
            :class:`~vit_plugin.models.ResNetEmbed`.

    Raises:
        ConfigError: if a name is not in the tables, or if a dict has an unknown key or lacks one.
            The message suggests the nearest name.
    """
    if isinstance(arch, str):
        return _from_timm(arch) if arch.startswith('timm://') else _parse_name(arch)
    if not isinstance(arch, Mapping):
        raise ConfigError(f'arch={arch!r} must be a name such as R50+B/16, or a dict.')
    check('arch', Signature(get_type_hints(ArchCfg, include_extras=True)), (), arch)
    resnet = arch.get('resnet')
    if resnet is None:
        patch_embed = dict(type='PatchEmbed', patch_size=arch.get('patch_size', 16))
    else:
        patch_size = arch.get('patch_size', resnet.get('patch_size', 1))
        patch_embed = dict(resnet, type='ResNetEmbed', patch_size=patch_size)
    return Arch(**{key: arch[key] for key in SIZE_KEYS}, patch_embed=patch_embed)


def num_heads_of_width(embed_dims: int) -> int | None:
    """The number of heads of the encoder with this width, or None if the table has none."""
    return next((size.num_heads for size in SIZES.values() if size.embed_dims == embed_dims), None)


def _from_timm(name: str) -> Arch:
    from vit_plugin.zoo import describe  # needs timm

    return Arch(**describe(name.removeprefix('timm://')))


def _parse_name(name: str) -> Arch:
    """The variant with a name from the tables, or of a project."""
    if declaration := _look_up(declared_rows('archs'), name):
        arch: Arch = resolve_name(declaration)
        return arch
    stem_and_size, slash, patch = name.partition('/')
    stem, plus, size = stem_and_size.rpartition('+')
    row = _look_up(SIZES, size)
    # `int` raises an error of its own for thousands of digits.
    number = int(patch) if patch.isdecimal() and len(patch) < 5 else 0
    patch_embed: dict[str, Any] | None = None
    if plus and row:
        patch_embed = _stem_config(stem, number)
    elif not slash:
        patch_embed = {}  # the stem is given elsewhere
    elif number in PATCH_SIZES:
        patch_embed = dict(type='PatchEmbed', patch_size=number)
    if row is None or patch_embed is None:
        raise ConfigError(_unknown_name(name))
    return Arch(
        row.embed_dims, row.num_layers, row.num_heads, row.feedforward_channels, patch_embed
    )


def _stem_config(name: str, stride: int) -> dict[str, Any] | None:
    """The config of the CNN of a hybrid, whose tokens have this stride, or None if unknown."""
    rows = _look_up(STEMS, name)
    if rows is None:
        from vit_plugin.zoo.feature_maps import map_indices  # needs timm

        maps = map_indices(name, stride)
        return dict(type='TimmEmbed', model_name=name, out_indices=maps) if maps else None
    if stride not in rows:
        return None
    stage_depths, patch_size = rows[stride]
    return dict(type='ResNetEmbed', stage_depths=stage_depths, patch_size=patch_size)


def _look_up(table: dict[str, Any], name: str) -> Any | None:
    """The row with exactly this name, or else the only one that differs in upper or lower case."""
    keys = [name] if name in table else [key for key in table if key.lower() == name.lower()]
    return table[keys[0]] if len(keys) == 1 else None


def _unknown_name(name: str) -> str:
    """The message about a name that is not in the tables."""
    from timm.models import is_model

    if is_model(name.partition('.')[0]):
        return f"Unknown arch {name!r}; a timm model is written arch='timm://{name}'."
    if '://' in name:
        return (
            f'Unknown arch {name!r}; the only address of an arch is timm://<model>. Weights from '
            "elsewhere belong in init_cfg=dict(type='Pretrained', checkpoint=...)."
        )
    near = closest(name, (*VARIANTS, *declared_rows('archs')), max_names=3, cutoff=0.3)
    stems = ', '.join(f'{stem} (/{", /".join(map(str, rows))})' for stem, rows in STEMS.items())
    return (
        f'Unknown arch {name!r}; the nearest are {", ".join(near or VARIANTS[:3])}. Sizes: '
        f'{", ".join(SIZES)}; patch sizes: {", ".join(map(str, PATCH_SIZES))}; stems: {stems}. '
        "For another patch size give arch='<size>' and patch_embed=dict(type='PatchEmbed', "
        'patch_size=...).'
    )
