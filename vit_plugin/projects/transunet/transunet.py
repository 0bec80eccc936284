"""The authors' names of TransUNet's backbone and decoder (Beckschen/TransUNet)."""

from vit_plugin.weights.rules import (
    Format,
    Rule,
    pair,
    separate_qkv,
)
from vit_plugin.weights.traits import (
    EPS_1E_6,
    GELU,
    Fields,
    KnownNumerics,
)

_EMBEDDINGS, _BLOCK, _HEAD = 'embeddings', 'encoder.layer.{i}', 'decode_head'
_UNIT = f'{_EMBEDDINGS}.hybrid_model.body.block{{i+1}}.unit{{j+1}}'
_STAGE = 'patch_embed.backbone.stages.{i}.blocks.{j}'
_ROOT = (f'{_EMBEDDINGS}.hybrid_model.root', 'patch_embed.backbone.stem')

TRANSUNET_NAMES = Format(
    'transunet',
    (
        Rule(f'{_EMBEDDINGS}.position_embeddings', 'pos_embed'),
        *pair(f'{_EMBEDDINGS}.patch_embeddings.', 'patch_embed.proj'),
        Rule(f'{_ROOT[0]}.conv.weight', f'{_ROOT[1]}.conv.weight'),
        *pair(f'{_ROOT[0]}.gn.', f'{_ROOT[1]}.norm'),
        Rule(f'{_UNIT}.downsample.weight', f'{_STAGE}.downsample.conv.weight'),
        *pair(f'{_UNIT}.gn_proj.', f'{_STAGE}.downsample.norm'),
        Rule(f'{_UNIT}.conv{{k}}.weight', f'{_STAGE}.conv{{k}}.weight'),
        *pair(f'{_UNIT}.gn{{k}}.', f'{_STAGE}.norm{{k}}'),
        *pair(f'{_BLOCK}.attention_norm.', 'blocks.{i}.norm1'),
        *pair(f'{_BLOCK}.ffn_norm.', 'blocks.{i}.norm2'),
        *pair(f'{_BLOCK}.ffn.fc1.', 'blocks.{i}.mlp.fc1'),
        *pair(f'{_BLOCK}.ffn.fc2.', 'blocks.{i}.mlp.fc2'),
        *separate_qkv(f'{_BLOCK}.attn.', ('query', 'key', 'value')),
        *pair(f'{_BLOCK}.attn.out.', 'blocks.{i}.attn.proj'),
        *pair('encoder.encoder_norm.', 'norm'),
        *(
            Rule(f'decoder.{theirs}.{k}.{{rest}}', f'{_HEAD}.{theirs}.{ours}.{{rest}}')
            for theirs in ('conv_more', 'blocks.{i}.conv1', 'blocks.{i}.conv2')
            for k, ours in enumerate(('conv', 'norm'))
        ),
        *pair('segmentation_head.0.', f'{_HEAD}.conv_seg'),
    ),
    prefixes=('transformer.',),
    outside=('decoder.', 'segmentation_head.'),
    known_numerics=(
        KnownNumerics(
            Fields(
                stem_norm_cfg=dict(eps=1e-6),
                stem_conv_cfg=dict(eps=1e-5, eps_inside_root=True, padding='symmetric'),
                stem_shortcut_norm_cfg=dict(type='IN', eps=1e-5),
                stem_pool_cfg=dict(padding='valid'),
            )
            | GELU
            | EPS_1E_6
        ),
    ),
)
