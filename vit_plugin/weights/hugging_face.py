"""The tables of transformers' models: ViT, DeiT and DINOv2."""

import math
from collections.abc import Mapping

from torch import Tensor

from .rules import ROW_MORE, Format, Rule, is_gated, pair, separate_qkv

_BLOCK = '(encoder.layer.|layers.){i}'
_BIT = 'embeddings.patch_embeddings.backbone.bit'


def _rowless(state: Mapping[str, Tensor]) -> bool:
    """Whether a state of ours has a class token and a (square) position table without a row for it."""
    return {'cls_token', 'pos_embed'} <= state.keys() and math.isqrt(state['pos_embed'].shape[1]) ** 2 == (
        state['pos_embed'].shape[1])


def _hugging_face(norms: tuple[str, str], fc1: str, fc2: str) -> tuple[Rule, ...]:
    """What transformers' models share: the names of the hub's files first, then those since 5.0."""
    return (
        Rule('embeddings.cls_token', 'cls_token'),
        Rule('embeddings.position_embeddings', 'pos_embed'),
        *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
        *separate_qkv(f'{_BLOCK}.attention.', (
            '(attention.query|q_proj)', '(attention.key|k_proj)', '(attention.value|v_proj)')),
        *pair(f'{_BLOCK}.attention.(output.dense|o_proj).', 'blocks.{i}.attn.proj'),
        *(rule for i in range(2) for rule in pair(f'{_BLOCK}.{norms[i]}.', f'blocks.{{i}}.norm{i + 1}')),
        *pair(f'{_BLOCK}.({fc1}).', 'blocks.{i}.mlp.fc1'),
        *pair(f'{_BLOCK}.({fc2}).', 'blocks.{i}.mlp.fc2'),
        *pair('layernorm.', 'norm'),
        *pair('pooler.dense.', 'head.layers.pre_logits'))


_VIT = _hugging_face(
    ('layernorm_before', 'layernorm_after'), 'intermediate.dense|mlp.fc1', 'output.dense|mlp.fc2')
_NUMERICS = dict(base='timm', norm_cfg=dict(eps=1e-12))

HF = Format('hf', (
    *_VIT,
    # the ResNet of a hybrid, of which transformers has BiT; gone from 5.0
    Rule(f'{_BIT}.embedder.convolution.weight', 'patch_embed.backbone.stem.conv.weight'),
    *pair(f'{_BIT}.embedder.norm.', 'patch_embed.backbone.stem.norm'),
    Rule(f'{_BIT}.encoder.stages.{{i}}.layers.{{rest}}', 'patch_embed.backbone.stages.{i}.blocks.{rest}'),
    *pair('classifier.', 'head.layers.head'),
), ('vit.', ''), ('classifier.', ), numerics=_NUMERICS)

HF_DEIT = Format('hf_deit', (
    *_VIT,
    Rule('embeddings.distillation_token', 'dist_token'),
    *pair('classifier.', 'head.layers.head', unless='head_dist'),  # of the class token alone
    *pair('cls_classifier.', 'head.layers.head'),
    *pair('distillation_classifier.', 'head.layers.head_dist'),
), ('deit.', ''), ('classifier.', 'cls_classifier.', 'distillation_classifier.'), numerics=_NUMERICS,
    ignored={'embeddings.mask_token': 'of masked pre-training'})

HF_DINOV2 = Format('hf_dinov2', (
    *pair(f'{_BLOCK}.mlp.weights_in.', 'blocks.{i}.mlp.fc1', written=is_gated),
    *pair(f'{_BLOCK}.mlp.weights_out.', 'blocks.{i}.mlp.fc2', written=is_gated),
    Rule('embeddings.position_embeddings', 'pos_embed', ROW_MORE, written=_rowless),
    *_hugging_face(('norm1', 'norm2'), 'mlp.fc1', 'mlp.fc2|mlp.down_proj'),
    *(Rule((f'{_BLOCK}.mlp.gate_proj.{kind}', f'{_BLOCK}.mlp.up_proj.{kind}'), f'blocks.{{i}}.mlp.fc1.{kind}',
           written=False) for kind in ('weight', 'bias')),
    Rule('embeddings.register_tokens', 'reg_token'),
    Rule(f'{_BLOCK}.layer_scale{{k}}.lambda1', 'blocks.{i}.ls{k}.gamma'),
    *pair('classifier.', 'head.layers.head'),
), ('', 'dinov2.', 'dinov2_with_registers.'), ('classifier.', ), numerics='timm',
    ignored={'embeddings.mask_token': 'of masked pre-training'})
