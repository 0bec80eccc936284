"""Traits of a model that its tensors show, and what they imply for its norms and activations.

A "state" is a mapping of tensors by our names. It may be damaged: a tensor with an
unexpected number of axes shows no trait, and its loading reports it.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from .reading.lazy import Weights

# Each trait -> the beginning of the names of ours that show it.
TRAITS = {
    'cls_token': 'cls_token',
    'pos_embed': 'pos_embed',
    'norm_pre': 'norm_pre.',
    'norm_bias': 'blocks.0.norm1.bias',
    'attn_norm': 'blocks.0.attn.norm.',
    'mlp_norm': 'blocks.0.mlp.norm.',
    'input_norm': 'blocks.0.mlp.input_norm.',
    'hybrid': 'patch_embed.backbone.stem.conv.',
}


def traits(state: Weights) -> set[str]:
    """The traits of a state: keys of ``TRAITS``, and ``'gated'`` for gated MLPs."""
    shown = {trait for key in state for trait, start in TRAITS.items() if key.startswith(start)}
    return shown | ({'gated'} if is_gated(state) else set())


def is_gated(state: Weights) -> bool:
    """True if the MLPs of a state are gated."""
    fc1, fc2 = 'blocks.0.mlp.fc1.weight', 'blocks.0.mlp.fc2.weight'
    if not _has_axes(state, fc1, 2) or not _has_axes(state, fc2, 2):
        return False
    # Our first layer then makes the gate and the value, each as wide as the input of the second.
    return state[fc1].shape[0] == 2 * state[fc2].shape[1]


def _has_axes(state: Weights, name: str, number: int) -> bool:
    """True if a state has a tensor of this name with this number of axes."""
    return name in state and state[name].ndim == number


def num_registers(state: Weights) -> int:
    """The number of register tokens of a state."""
    return state['reg_token'].shape[1] if _has_axes(state, 'reg_token', 3) else 0


def has_plain_mlps(state: Weights) -> bool:
    """True if the MLPs of a state are not gated. Some formats have no names for gated ones."""
    return not is_gated(state)


def norms_input(state: Weights) -> bool:
    """True if the MLPs of a state norm their input, as in ViTamin."""
    return 'blocks.0.mlp.input_norm.weight' in state


def is_rowless(state: Weights) -> bool:
    """True if a state has a class token and a square position table without a row for it."""
    if 'cls_token' not in state or not _has_axes(state, 'pos_embed', 3):
        return False
    rows = state['pos_embed'].shape[1]
    return math.isqrt(rows) ** 2 == rows


def is_deit3(state: Weights) -> bool:
    """True if a state is a DeiT-III's: LayerScale, and no row in the table for the class token."""
    return 'blocks.0.ls1.gamma' in state and is_rowless(state)


@dataclass(frozen=True)
class KnownNumerics:
    """The norms and activations of a format's own code, for checkpoints with certain traits.

    Weights do not show them, so loading compares them with the model's.

    Attributes:
        numerics: those fields of the backbone's ``numerics`` that are certain.
        having, lacking: traits from :func:`traits` that the checkpoint must have or lack.
    """

    numerics: Mapping[str, Mapping[str, Any]]
    having: Set[str] = frozenset()
    lacking: Set[str] = frozenset()


# Claims that several formats share.
Fields = dict[str, dict[str, Any]]
GELU: Fields = dict(act_cfg=dict(type='GELU', approximate='none'))
EPS_1E_6: Fields = dict(norm_cfg=dict(eps=1e-6))
EPS_1E_5: Fields = dict(norm_cfg=dict(eps=1e-5))
EPS_1E_12: Fields = dict(norm_cfg=dict(eps=1e-12))
SILU = KnownNumerics(
    dict(act_cfg=dict(type='SiLU')), having=frozenset({'gated'}), lacking=frozenset({'input_norm'})
)
# google-research/vision_transformer and big_vision.
AUTHORS_NUMERICS = KnownNumerics(
    Fields(
        act_cfg=dict(type='GELU', approximate='tanh'),
        stem_norm_cfg=dict(eps=1e-6),
        stem_conv_cfg=dict(eps=1e-5, eps_inside_root=False),
    )
    | EPS_1E_6
)
