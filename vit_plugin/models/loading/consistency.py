"""Find differences between a backbone and the model of a checkpoint that no tensor shape shows.

Weights of another model may have the same shapes: CLIP's, DINO's and MAE's B/16 differ in their
GELU and their eps, and models with other heads or rotary positions fit as well. Three things may
show the difference: the name of the weights (:func:`compare_named_model`), their format
(:func:`check_heads`, :func:`note_numerics`), or a table in them that our model computes
(:func:`check_tables`). Differences in heads and positions raise, since the outputs would be
useless. Differences in numerics are mostly small, and only noted.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.weights.hub import timm_name
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.report import Report, shortened_list
from vit_plugin.weights.rules import COMPUTED
from vit_plugin.weights.traits import Fields, traits

from ..layers.attention import Attention
from ..layers.attention_pool import AttentionPool
from ..layers.numerics import NUMERICS, Numerics, get_numerics
from ..layers.rotary import AxialRotary, read_rotary
from ..stems import ResNetEmbed

# Rotary options that only affect training: weights fit any of them.
ROTARY_AUGMENTATIONS = ('shift', 'jitter', 'rescale')
TABLE_TOLERANCE = 1e-2  # tables may be in bfloat16; with other frequencies they differ by about 1


def compare_named_model(backbone: nn.Module, source: str) -> Fields:
    """Compare a backbone with the model that a source names.

    Args:
        backbone: a :class:`~vit_plugin.models.VisionTransformer`.
        source: where the weights come from. Only timm names tell more than the tensors.

    Returns:
        The numerics of that model; {} for other sources.

    Raises:
        ConfigError: if the heads or the rotary positions differ, which would make the weights
            useless.
    """
    name = timm_name(source)
    if name is None:
        return {}
    try:
        named_arch = parse_arch(f'timm://{name}')
    except ConfigError:  # not a ViT, or not fully known; the tensors decide
        return {}
    arguments = named_arch.complete()
    expected = _structure(named_arch.num_heads, arguments)
    actual = _structure(backbone.num_heads, backbone.arguments)
    for field, value in expected.items():
        if actual[field] != value:
            raise ConfigError(
                f'{source} has weights of a model with {field}={value!r}, but this backbone has '
                f'{field}={actual[field]!r}, so it would compute something else; give '
                f"arch='timm://{name}', or change that."
            )
    return asdict(get_numerics(arguments.numerics))


def _structure(num_heads: int, arguments: Any) -> dict[str, Any]:
    """Settings that change the model and have no tensor of their own."""
    rotary = arguments.pos_embed.get('rotary')
    if rotary is not None:
        options = asdict(read_rotary(rotary))
        rotary = {name: options[name] for name in options if name not in ROTARY_AUGMENTATIONS}
        rotary['native_grid'] = rotary['native_grid'] and tuple(rotary['native_grid'])
    return {'num_heads': num_heads, 'rotary': rotary}


def check_heads(
    backbone: nn.Module, weights: Recognized, matched: Iterable[str], pool: AttentionPool | None
) -> None:
    """Compare the numbers of attention heads, which the shapes of our tensors do not show.

    Some formats do show them: flax saves queries as arrays (width, heads, head width).

    Args:
        backbone: the backbone.
        weights: the checkpoint's weights.
        matched: our names of the weights to load.
        pool: the attention pooling after the backbone. If unknown, the number of heads of the
            encoder is assumed.

    Raises:
        ConfigError: if the numbers differ.
    """
    modules = dict(backbone.named_modules())
    for ours in matched:
        step = weights.steps[ours]
        num_heads = step.heads(weights.theirs)
        if num_heads is None:  # the format does not show it
            continue
        attention = modules.get('.'.join(ours.split('.')[:-2]))  # without .qkv.weight
        if not isinstance(attention, Attention):  # a parameter of the pooling
            attention = pool or backbone.blocks[0].attn
        if num_heads != attention.num_heads:
            raise ConfigError(
                f'{ours}: the checkpoint has {num_heads} attention heads ({step.theirs[0]}), the '
                f'model {attention.num_heads}; set num_heads={num_heads} in arch, or in map_cfg of '
                'the neck.'
            )


def check_tables(backbone: nn.Module, weights: Recognized, ignored: Mapping[str, str]) -> None:
    """Compare the tables in the checkpoint with those that the model computes.

    Args:
        backbone: the backbone.
        weights: the checkpoint's weights.
        ignored: the keys of weights that are not loaded -> the reason.

    Raises:
        ConfigError: if the tables differ.
    """
    different = [
        key
        for key, reason in ignored.items()
        if reason == COMPUTED and not _computes_table(backbone, key, weights.theirs[key])
    ]
    if different:
        skip = sorted({re.sub(r'\.\d+\.', '.{i}.', key) for key in different})
        raise ConfigError(
            f'{shortened_list(different)}: the model computes other rotary positions than the '
            'checkpoint was trained with; set rotary in pos_embed to those, or leave the tables '
            f'out with skip={skip} in load_weights or init_cfg, and fine-tune.'
        )


def _computes_table(backbone: nn.Module, key: str, value: Tensor) -> bool:
    """True if the model computes this table of a checkpoint.

    A table with a row for each patch is taken as that of a square grid, or else of the model's
    grid. The model's table is computed on the same grid.
    """
    if not isinstance(backbone.rope, AxialRotary) or not (value.ndim and value.numel()):
        return False
    num_patches = value.numel() // value.shape[-1]  # (N, d), or (h, w, d)
    side = math.isqrt(num_patches)
    grid = (side, side) if side * side == num_patches else backbone.position.grid
    ours = _table(backbone.rope, key.rpartition('.')[2], grid)
    value = value.detach().to('cpu', torch.float32)
    return value.numel() == ours.numel() and torch.allclose(
        value.reshape(ours.shape), ours, rtol=TABLE_TOLERANCE, atol=TABLE_TOLERANCE
    )


def _table(rope: AxialRotary, name: str, grid: tuple[int, int]) -> Tensor:
    """The model's own table, by the last part of the checkpoint's key."""
    if name in ('periods', 'inv_freq'):  # names in DINOv3's files and in those of transformers
        periods = rope.periods('cpu')
        return periods if name == 'periods' else 1.0 / periods
    angles = rope.angles(rope.options.coordinates(grid, torch.device('cpu')))
    angles = torch.stack((angles, angles), rope.plane_axis).flatten(-2)  # (N, d)
    return angles.cos() if name == 'freqs_cos' else angles.sin()  # EVA-02


def note_numerics(
    backbone: nn.Module, weights: Recognized, report: Report, named_numerics: Mapping[str, Any]
) -> None:
    """Report numerics that certainly differ, and what the format notes about its own code.

    Args:
        backbone: the backbone.
        weights: the checkpoint's weights.
        report: receives both.
        named_numerics: numerics of the model that the weights belong to, if its name is known, see
            :func:`compare_named_model`.
    """
    report.notes += [note for applies, note in weights.format.notes if applies(weights)]
    weight_traits = traits(weights)
    # Claims about the format's own code, for checkpoints with these traits.
    of_format = [
        known.numerics
        for known in weights.format.known_numerics
        if known.having <= weight_traits and not known.lacking & weight_traits
    ]
    is_hybrid = isinstance(backbone.patch_embed, ResNetEmbed)
    certain = {
        field: change
        for known in (*of_format, named_numerics)
        for field, change in known.items()
        if is_hybrid or not field.startswith('stem')
    }
    # Recommend a preset only if the activation is certain, and no certain detail contradicts it.
    presets = [
        name
        for name, preset in NUMERICS.items()
        if 'act_cfg' in certain and all(_agrees(preset, *item) for item in certain.items())
    ]
    for field, change in certain.items():
        if not _agrees(backbone.numerics, field, change):
            setting = f'numerics={presets[0]!r}' if presets else f'{field}={change} in numerics'
            report.numerics[
                f'the weights are of code with {field}={change}, the model computes with '
                f'{getattr(backbone.numerics, field)}'
            ] = f'set {setting}'


def _agrees(numerics: Numerics, field: str, change: Mapping[str, Any]) -> bool:
    """True if a field of the numerics has these entries."""
    # Without 'approximate', torch's GELU is exact.
    settings = {'approximate': 'none', **getattr(numerics, field)}
    return all(settings.get(key) == value for key, value in change.items())
