"""The naming tables of transformers: ViT, DeiT, BEiT, DINOv2, DINOv3, Pixio, AIMv2 and SigLIP.

For the rules see :mod:`vit_plugin.weights.formats`.
"""

from collections.abc import Callable

from ..rules import CLASS_TOKEN_ROW, COMPUTED, POSITION_ROWS, Format, Rule, pair, separate_qkv
from ..traits import (
    AUTHORS_NUMERICS,
    EPS_1E_5,
    EPS_1E_6,
    EPS_1E_12,
    GELU,
    SILU,
    KnownNumerics,
    is_gated,
    is_rowless,
)
from .clip import attention_pool
from .plain_block import plain_block, two_in_one

_BLOCK = '(encoder.layer.|layers.){i}'


def _hugging_face(norm1: str, norm2: str, fc1: str, fc2: str) -> tuple[Rule, ...]:
    """Rules that transformers' models share, given their names of the layers that differ.

    In each choice, the name in the hub's files comes before the name since transformers 5.0.
    """
    return (
        Rule('embeddings.cls_token', 'cls_token'),
        Rule('embeddings.position_embeddings', 'pos_embed'),
        *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
        *separate_qkv(
            f'{_BLOCK}.attention.',
            ('(attention.query|q_proj)', '(attention.key|k_proj)', '(attention.value|v_proj)'),
        ),
        *plain_block(
            _BLOCK, norm1, 'attention.(output.dense|o_proj)', norm2, f'({fc1})', f'({fc2})'
        ),
        *pair('layernorm.', 'norm'),
        *pair('pooler.dense.', 'head.layers.pre_logits'),
    )


def two_gates(
    block: str, ours: str = 'blocks.{i}', written: bool | Callable = is_gated
) -> tuple[Rule, ...]:
    """The rules of a gated MLP's first two layers, which are one of ours.

    Args:
        block: their name of the block.
        ours: our name of the block.
        written: see :class:`~vit_plugin.weights.rules.Rule`.
    """
    mlp = f'{block}.mlp'
    return two_in_one(f'{mlp}.gate_proj', f'{mlp}.up_proj', f'{ours}.mlp.fc1', written=written)


def resnet(theirs: str) -> tuple[Rule, ...]:
    """The rules of a hybrid's ResNet with this name. transformers had only BiT, until 5.0."""
    ours = 'patch_embed.backbone'
    return (
        Rule(f'{theirs}.embedder.convolution.{{rest}}', f'{ours}.stem.conv.{{rest}}'),
        Rule(f'{theirs}.embedder.norm.{{rest}}', f'{ours}.stem.norm.{{rest}}'),
        Rule(
            f'{theirs}.encoder.stages.{{i}}.layers.{{rest}}', f'{ours}.stages.{{i}}.blocks.{{rest}}'
        ),
    )


_VIT = _hugging_face(
    'layernorm_before', 'layernorm_after', 'intermediate.dense|mlp.fc1', 'output.dense|mlp.fc2'
)
_NUMERICS = (KnownNumerics(GELU | EPS_1E_12),)

HF = Format(
    'hf',
    (
        *_VIT,
        *resnet('embeddings.patch_embeddings.backbone.bit'),
        *pair('classifier.', 'head.layers.head'),
    ),
    prefixes=('vit.', '', 'ijepa.'),
    outside=('classifier.',),
    known_numerics=_NUMERICS,
    ignored={
        'embeddings.mask_token': 'of masked pre-training',
        'decoder.{rest}': 'decoder of masked pre-training',
    },
)

HF_DEIT = Format(
    'hf_deit',
    (
        *_VIT,
        Rule('embeddings.distillation_token', 'dist_token'),
        # With a second head, the first one is the `cls_classifier` below.
        *pair('classifier.', 'head.layers.head', unless='head_dist'),
        *pair('cls_classifier.', 'head.layers.head'),
        *pair('distillation_classifier.', 'head.layers.head_dist'),
    ),
    prefixes=('deit.', ''),
    outside=('classifier.', 'cls_classifier.', 'distillation_classifier.'),
    known_numerics=_NUMERICS,
    ignored={'embeddings.mask_token': 'of masked pre-training'},
)

HF_DINOV2 = Format(
    'hf_dinov2',
    (
        *pair(f'{_BLOCK}.mlp.weights_in.', 'blocks.{i}.mlp.fc1', written=is_gated),
        *pair(f'{_BLOCK}.mlp.weights_out.', 'blocks.{i}.mlp.fc2', written=is_gated),
        Rule('embeddings.position_embeddings', 'pos_embed', CLASS_TOKEN_ROW, written=is_rowless),
        *_hugging_face('norm1', 'norm2', 'mlp.fc1', 'mlp.fc2|mlp.down_proj'),
        *two_gates(_BLOCK, written=False),
        Rule('embeddings.register_tokens', 'reg_token'),
        Rule(f'{_BLOCK}.layer_scale{{k}}.lambda1', 'blocks.{i}.ls{k}.gamma'),
        *pair('classifier.', 'head.layers.head'),
    ),
    prefixes=('', 'dinov2.', 'dinov2_with_registers.'),
    outside=('classifier.',),
    known_numerics=(KnownNumerics(EPS_1E_6), KnownNumerics(GELU, lacking={'gated'}), SILU),
    ignored={'embeddings.mask_token': 'of masked pre-training'},
)


# Their and our name of the table of relative positions.
_TABLE = 'relative_position_bias.relative_position_bias_table'
_OUR_TABLE = 'rel_pos_bias.relative_position_bias_table'
_BEIT = (
    *_VIT,
    *(
        Rule(
            f'{_BLOCK}.attention.(attention.{name}|{short}_proj).bias',
            f'blocks.{{i}}.attn.qkv.{short}_bias',
        )
        for name, short in (('query', 'q'), ('value', 'v'))
    ),
    Rule(f'{_BLOCK}.lambda_{{k}}', 'blocks.{i}.ls{k}.gamma'),
    Rule(f'{_BLOCK}.attention.(attention.|){_TABLE}', f'blocks.{{i}}.attn.{_OUR_TABLE}'),
    Rule(f'encoder.{_TABLE}', _OUR_TABLE),
    *pair('pooler.layernorm.', 'neck.norm'),
    *pair('classifier.', 'head.layers.head'),
)
_MASKED = {
    'embeddings.mask_token': 'of masked pre-training',
    'lm_head.{rest}': 'of masked pre-training',
}
# BEiT and Data2Vec.
HF_BEIT = Format(
    'hf_beit',
    _BEIT,
    prefixes=('beit.', 'data2vec_vision.', ''),
    outside=('classifier.',),
    known_numerics=_NUMERICS,
    ignored=_MASKED,
)
# BEiT's model for masked pre-training, whose last norm is outside of the encoder.
HF_BEIT_MASKED = Format(
    'hf_beit_masked',
    _BEIT,
    prefixes=('beit.',),
    outside=('layernorm.', 'lm_head.'),
    known_numerics=_NUMERICS,
    ignored=_MASKED,
)


def dinov3(block: str, embeddings: str, norm: str) -> tuple[Rule, ...]:
    """The rules of DINOv3, given their names of the blocks, the embeddings and the last norm."""
    return (
        Rule(f'{embeddings}.cls_token', 'cls_token'),
        Rule(f'{embeddings}.register_tokens', 'reg_token'),
        *pair(f'{embeddings}.patch_embeddings.', 'patch_embed.proj'),
        *dinov3_block(block),
        *pair(f'{norm}.', 'norm'),
    )


def dinov3_block(block: str, ours: str = 'blocks.{i}') -> tuple[Rule, ...]:
    """The rules of a block of DINOv3, given their and our name of the block."""
    return (
        Rule(f'{block}.norm{{k}}.{{rest}}', f'{ours}.norm{{k}}.{{rest}}'),
        Rule(f'{block}.layer_scale{{k}}.lambda1', f'{ours}.ls{{k}}.gamma'),
        *separate_qkv(f'{block}.attention.', ('q_proj', 'k_proj', 'v_proj'), ours),
        *(
            Rule(f'{block}.attention.{part}_proj.bias', f'{ours}.attn.qkv.{part}_bias')
            for part in 'qv'
        ),
        *pair(f'{block}.attention.o_proj.', f'{ours}.attn.proj'),
        *two_gates(block, ours),
        *pair(f'{block}.mlp.up_proj.', f'{ours}.mlp.fc1'),
        *pair(f'{block}.mlp.down_proj.', f'{ours}.mlp.fc2'),
    )


# Pixio has several class tokens. All but the first are registers in our backbone.
HF_PIXIO = Format(
    'hf_pixio',
    (
        Rule('embeddings.cls_token', 'cls_token', tokens=(0, 1)),
        Rule('embeddings.cls_token', 'reg_token', tokens=(1, None)),
        *_hugging_face('norm1', 'norm2', 'intermediate.dense|mlp.fc1', 'output.dense|mlp.fc2'),
    ),
    prefixes=('', 'pixio.'),
    known_numerics=(KnownNumerics(GELU | EPS_1E_6),),
    ignored={'embeddings.mask_token': 'of masked pre-training'},
)


# In each choice, the name in the hub's files comes before the name since transformers 5.0.
HF_DINOV3 = Format(
    'hf_dinov3',
    (
        *dinov3('(layer|model.layer).{i}', 'embeddings', 'norm'),
        *pair('classifier.', 'head.layers.head'),
    ),
    prefixes=('', 'dinov3_vit.'),
    outside=('classifier.',),
    known_numerics=(KnownNumerics(EPS_1E_5), SILU),
    ignored={
        'embeddings.mask_token': 'of masked pre-training',
        'rope_embeddings.inv_freq': COMPUTED,
    },
)

_LAYER = 'encoder.layers.{i}'

# The image tower of AIMv2.
HF_AIMV2 = Format(
    'hf_aimv2',
    (
        *pair('embeddings.patch_embed.', 'patch_embed.proj'),
        Rule('embeddings.rms_norm.{rest}', 'patch_embed.norm.{rest}'),
        Rule('embeddings.position_embedding.weight', 'pos_embed', POSITION_ROWS),
        *separate_qkv(f'{_LAYER}.attention.', ('q_proj', 'k_proj', 'v_proj')),
        *pair(f'{_LAYER}.attention.out_proj.', 'blocks.{i}.attn.proj'),
        Rule(f'{_LAYER}.rms_norm{{k}}.{{rest}}', 'blocks.{i}.norm{k}.{rest}'),
        *two_in_one(
            f'{_LAYER}.ffn.gate_proj',
            f'{_LAYER}.ffn.up_proj',
            'blocks.{i}.mlp.fc1',
            written=is_gated,
        ),
        *pair(f'{_LAYER}.ffn.down_proj.', 'blocks.{i}.mlp.fc2'),
        Rule('rms_norm.{rest}', 'norm.{rest}'),
        Rule('head.cls_token', 'neck.attn_pool.latent'),
        *two_in_one('head.k_proj', 'head.v_proj', 'neck.attn_pool.kv', written=True),
        *pair('head.output_proj.', 'neck.attn_pool.proj'),
    ),
    prefixes=('', 'vision_model.'),
    known_numerics=(KnownNumerics(EPS_1E_5), SILU),
    ignored={
        'text_model.{rest}': 'text tower',
        'visual_projection.weight': 'projection to the space shared with the text',
        'text_projection.weight': 'projection to the space shared with the text',
        'logit_scale': 'contrastive loss',
    },
)

# The image tower of SigLIP and of SigLIP 2 at fixed sizes.
HF_SIGLIP = Format(
    'hf_siglip',
    (
        *pair('embeddings.patch_embedding.', 'patch_embed.proj'),
        Rule('embeddings.position_embedding.weight', 'pos_embed', POSITION_ROWS),
        *separate_qkv(f'{_LAYER}.self_attn.', ('q_proj', 'k_proj', 'v_proj')),
        *plain_block(
            _LAYER, 'layer_norm1', 'self_attn.out_proj', 'layer_norm2', 'mlp.fc1', 'mlp.fc2'
        ),
        *pair('post_layernorm.', 'norm'),
        *attention_pool('head', 'attention', 'mlp.fc1', 'mlp.fc2'),
        *pair('classifier.', 'head.layers.head'),
    ),
    prefixes=('vision_model.', ''),
    outside=('classifier.',),
    known_numerics=(AUTHORS_NUMERICS,),
    ignored={
        'text_model.{rest}': 'text tower',
        'logit_scale': 'contrastive loss',
        'logit_bias': 'contrastive loss',
    },
)
