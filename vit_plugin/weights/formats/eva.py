"""Rules for the names by which EVA, EVA-02, DINOv3, BEiT and ViTamin differ from timm's ViTs.

They are part of the naming tables in :mod:`vit_plugin.weights.formats.timm`. A function as
``written`` decides by the state to write, which has our names, whether a rule is used for it.
"""

from ..reading.lazy import Weights
from ..rules import Rule, pair, separate_qkv
from ..traits import is_gated, norms_input
from .plain_block import two_in_one

_ATTN, _MLP = 'blocks.{i}.attn', 'blocks.{i}.mlp'
_QKV = ('q_proj', 'k_proj', 'v_proj')
TIMM_BIAS_TABLE = 'relative_position_bias_table'
TABLE_RULE = Rule(f'{_ATTN}.{TIMM_BIAS_TABLE}', f'{_ATTN}.rel_pos_bias.{TIMM_BIAS_TABLE}')


def fits_vision_transformer(state: Weights) -> bool:
    """True if a state fits timm's class VisionTransformer. Some states also fit its class Eva."""
    # It has no separate bias of queries and no learned rotary frequencies, and it has a position
    # table if it has a class token.
    return (
        'blocks.0.attn.qkv.q_bias' not in state
        and 'rope.freqs' not in state
        and ('pos_embed' in state or 'cls_token' not in state)
    )


def _has_separate_qkv(state: Weights) -> bool:
    """True if timm's model has separate query, key and value layers, as the larger EVA-02 have.

    In timm, these are the models whose gated MLPs have a norm.
    """
    return is_gated(state) and 'blocks.0.mlp.norm.weight' in state


def _has_joint_qkv(state: Weights) -> bool:
    """The opposite of :func:`_has_separate_qkv`."""
    return not _has_separate_qkv(state)


def _has_two_gates(state: Weights) -> bool:
    """True if both parts of a gated MLP are separate layers in timm."""
    return is_gated(state) and (
        _has_separate_qkv(state)  # EVA-02
        or 'blocks.0.mlp.fc1.bias' not in state  # AIMv2
        or (not fits_vision_transformer(state) and 'blocks.0.ls2.gamma' in state)  # DINOv3
    )


_FC1 = f'{_MLP}.fc1'  # our layer that holds both parts of a gated MLP, gate first
TWO_GATES = two_in_one(f'{_MLP}.fc1_g', f'{_MLP}.fc1_x', _FC1, written=_has_two_gates)

# timm's classes Eva and Beit.
EVA = (
    TABLE_RULE,
    Rule('blocks.{i}.gamma_{k}', 'blocks.{i}.ls{k}.gamma'),
    *separate_qkv(f'{_ATTN}.', _QKV, written=_has_separate_qkv),
    *(
        Rule(f'{_ATTN}.{part}_proj.bias', f'{_ATTN}.qkv.{part}_bias', written=_has_separate_qkv)
        for part in 'qv'
    ),
    *(
        Rule(f'{_ATTN}.{part}_bias', f'{_ATTN}.qkv.{part}_bias', written=_has_joint_qkv)
        for part in 'qv'
    ),
)

VITAMIN = (
    *two_in_one(f'{_MLP}.w0', f'{_MLP}.w1', _FC1, written=norms_input),
    *pair(f'{_MLP}.w2.', f'{_MLP}.fc2', when='.mlp.w0.', written=norms_input),
    Rule(f'{_MLP}.norm.{{rest}}', f'{_MLP}.input_norm.{{rest}}', when='.mlp.w0.'),
)

# Names of timm's class Eva, and of authors who otherwise use timm's names. For reading only.
SPELLINGS = (
    TABLE_RULE,
    Rule('(register_tokens|storage_tokens)', 'reg_token', written=False),
    # ViT-Adapter leaves this layer out.
    Rule('blocks.{i}.gamma(_|){k}', 'blocks.{i}.ls{k}.gamma', written=False),
    *separate_qkv(f'{_ATTN}.', _QKV, written=False),
    *(
        Rule(f'{_ATTN}.({part}_bias|{part}_proj.bias)', f'{_ATTN}.qkv.{part}_bias', written=False)
        for part in 'qv'
    ),
    # DINOv3 has a bias of the keys, which a mask sets to zero, so that only two thirds are read.
    *(
        Rule(
            f'{_ATTN}.qkv.bias',
            f'{_ATTN}.qkv.{part}_bias',
            thirds=thirds,
            when='.qkv.bias_mask',
            written=False,
        )
        for part, thirds in (('q', (0, 1)), ('v', (2, 3)))  # the array is (q, k, v)
    ),
    # SwiGLU in one array (DINOv2) or in two (DINOv3, EVA-02)
    *pair(f'{_MLP}.w12.', f'{_MLP}.fc1', written=False),
    *two_in_one(f'{_MLP}.w1', f'{_MLP}.w2', _FC1, written=False, unless='.mlp.w0.'),
    *pair(f'{_MLP}.w3.', f'{_MLP}.fc2', written=False),
    # the norms within EVA-02's blocks
    Rule(f'{_MLP}.ffn_ln.{{rest}}', f'{_MLP}.norm.{{rest}}', written=False),
    Rule(f'{_ATTN}.inner_attn_ln.{{rest}}', f'{_ATTN}.norm.{{rest}}', written=False),
)
