"""The one table of variants, and the parser of their names.

``parse_arch('B/16')`` is a ViT-Base on 16 x 16 patches; ``parse_arch('R50+B/16')`` the same transformer
on the feature map of a ResNet-50. A new variant is one row here and its parameter count in the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from vit_plugin.errors import ConfigError

SIZE_KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


@dataclass(frozen=True)
class Size:
    """Width, depth, heads and MLP width of a transformer encoder, and the table they come from."""
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
    'H': Size(1280, 32, 16, 5120, 'arXiv:2010.11929, Table 1'),
    'g': Size(1408, 40, 16, 6144, 'arXiv:2106.04560, Table 2'),
    'G': Size(1664, 48, 16, 8192, 'arXiv:2106.04560, Table 2'),
}

PATCH_SIZES = (2, 4, 8, 14, 16, 32)

# Stem -> number in the variant's name -> (depth of each ResNet stage, patch size on the last map).
# arXiv:2010.11929, Section 4.1, and google-research/vision_transformer `configs/models.py`. The
# authors call R+Ti /16; its root (stride 4) under 8 x 8 patches has the stride 32.
STEMS: dict[str, dict[int, tuple[tuple[int, ...], int]]] = {
    'R': {16: ((), 8)},
    'R26': {32: ((2, 2, 2, 2), 1)},
    'R50': {16: ((3, 4, 9), 1), 32: ((3, 4, 6, 3), 1)},
}

# The variants that the papers name. Others combine in the same way ('R26+Ti/32', 'B/4').
VARIANTS = (
    'Ti/16', 'S/32', 'S/16', 'B/32', 'B/16', 'B/8', 'L/32', 'L/16', 'H/14', 'g/14', 'G/14',
    'R+Ti/16', 'R26+S/32', 'R26+B/32', 'R50+B/16', 'R50+L/32')


@dataclass(frozen=True)
class Arch:
    """A parsed variant: the encoder's sizes and the config of the stem below it.

    Raises:
        ConfigError: if a size is not positive, or the width not divisible by the number of heads.
    """
    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    patch_embed: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in SIZE_KEYS:
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ConfigError(f'arch: {name}={getattr(self, name)!r} must be a positive whole number.')
        if self.embed_dims % self.num_heads:
            raise ConfigError(
                f'arch: embed_dims={self.embed_dims} is not divisible by num_heads={self.num_heads}; '
                'change one of them so that every head has the same width.')


def parse_arch(arch: str | Mapping[str, Any]) -> Arch:
    """Sizes and stem of a variant.

    Args:
        arch: a name, ``'<size>/<patch>'`` or ``'<stem>+<size>/<patch>'`` in upper or lower case (only g
            and G differ by it), ``'<size>'`` alone where the stem is given elsewhere; or a dict with
            MMPretrain's keys ``embed_dims, num_layers, num_heads, feedforward_channels`` and, for
            the stem, ``patch_size`` (on the image, or on the last map of the CNN; default 16, or 1)
            and ``resnet``, the arguments of :class:`~vit_plugin.models.ResNetEmbed`.

    Raises:
        ConfigError: for a name or a key that is not in the tables, naming the nearest ones.
    """
    if isinstance(arch, str):
        return _parse_name(arch)
    missing = [key for key in SIZE_KEYS if key not in arch]
    unknown = [key for key in arch if key not in (*SIZE_KEYS, 'patch_size', 'resnet')]
    if missing or unknown:
        raise ConfigError(
            f'Custom arch needs a dict with the keys {", ".join(SIZE_KEYS)} (and optionally patch_size, '
            f'resnet); missing: {missing or "none"}, unknown: {unknown or "none"}.')
    resnet = arch.get('resnet')
    if resnet is None:
        patch_embed = dict(type='PatchEmbed', patch_size=arch.get('patch_size', 16))
    else:
        patch_embed = dict(resnet, type='ResNetEmbed', patch_size=arch.get('patch_size', 1))
    return Arch(**{key: arch[key] for key in SIZE_KEYS}, patch_embed=patch_embed)


def _parse_name(name: str) -> Arch:
    stem_and_size, slash, patch = name.partition('/')
    stem, plus, size = stem_and_size.rpartition('+')
    row = _look_up(SIZES, size)
    stems = _look_up(STEMS, stem) if plus else dict.fromkeys(PATCH_SIZES)
    number = int(patch) if patch.isdecimal() else None
    if row is None or stems is None or (number not in stems and (slash or plus)):
        raise ConfigError(_unknown(name))
    if not slash:
        patch_embed = {}
    elif plus:
        stage_depths, patch_size = stems[number]
        patch_embed = dict(type='ResNetEmbed', stage_depths=stage_depths, patch_size=patch_size)
    else:
        patch_embed = dict(type='PatchEmbed', patch_size=number)
    return Arch(row.embed_dims, row.num_layers, row.num_heads, row.feedforward_channels, patch_embed)


def _look_up(table: dict[str, Any], name: str) -> Any | None:
    """The row of that very name, else of the only name that differs from it by its case."""
    folded = [name] if name in table else [key for key in table if key.lower() == name.lower()]
    return table[folded[0]] if len(folded) == 1 else None


def _unknown(name: str) -> str:
    folded = {variant.lower(): variant for variant in reversed(VARIANTS)}
    near = [folded[key] for key in get_close_matches(name.lower(), folded, n=3, cutoff=0.3)]
    stems = ', '.join(f'{stem} (/{", /".join(map(str, rows))})' for stem, rows in STEMS.items())
    return (f'Unknown arch {name!r}; the nearest are {", ".join(near or VARIANTS[:3])}. '
            f'Sizes: {", ".join(SIZES)}; patch sizes: {", ".join(map(str, PATCH_SIZES))}; stems: {stems}. '
            "For another patch size give arch='<size>' and "
            "patch_embed=dict(type='PatchEmbed', patch_size=...).")
