"""Rules from the names of TransUNet's weights in Beckschen/TransUNet to ours.

The placeholders of a rule are explained in :mod:`vit_plugin.weights.patterns`.
"""

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

# Parts of their names, then the unit of a ResNet stage in their names and in ours.
_EMBEDDINGS, _BLOCK, _HEAD = 'embeddings', 'encoder.layer.{i}', 'decode_head'
_UNIT = f'{_EMBEDDINGS}.hybrid_model.body.block{{i+1}}.unit{{j+1}}'
_OUR_UNIT = 'patch_embed.backbone.stages.{i}.blocks.{j}'
_THEIR_ROOT, _OUR_ROOT = f'{_EMBEDDINGS}.hybrid_model.root', 'patch_embed.backbone.stem'

TRANSUNET_NAMES = Format(
    'transunet',
    (
        Rule(f'{_EMBEDDINGS}.position_embeddings', 'pos_embed'),
        *pair(f'{_EMBEDDINGS}.patch_embeddings.', 'patch_embed.proj'),
        Rule(f'{_THEIR_ROOT}.conv.weight', f'{_OUR_ROOT}.conv.weight'),
        *pair(f'{_THEIR_ROOT}.gn.', f'{_OUR_ROOT}.norm'),
        Rule(f'{_UNIT}.downsample.weight', f'{_OUR_UNIT}.downsample.conv.weight'),
        *pair(f'{_UNIT}.gn_proj.', f'{_OUR_UNIT}.downsample.norm'),
        Rule(f'{_UNIT}.conv{{k}}.weight', f'{_OUR_UNIT}.conv{{k}}.weight'),
        *pair(f'{_UNIT}.gn{{k}}.', f'{_OUR_UNIT}.norm{{k}}'),
        *pair(f'{_BLOCK}.attention_norm.', 'blocks.{i}.norm1'),
        *pair(f'{_BLOCK}.ffn_norm.', 'blocks.{i}.norm2'),
        *pair(f'{_BLOCK}.ffn.fc1.', 'blocks.{i}.mlp.fc1'),
        *pair(f'{_BLOCK}.ffn.fc2.', 'blocks.{i}.mlp.fc2'),
        *separate_qkv(f'{_BLOCK}.attn.', ('query', 'key', 'value')),
        *pair(f'{_BLOCK}.attn.out.', 'blocks.{i}.attn.proj'),
        *pair('encoder.encoder_norm.', 'norm'),
        *(
            # They number the layers of an nn.Sequential.
            Rule(f'decoder.{module}.{number}.{{rest}}', f'{_HEAD}.{module}.{layer}.{{rest}}')
            for module in ('conv_more', 'blocks.{i}.conv1', 'blocks.{i}.conv2')
            for number, layer in enumerate(('conv', 'norm'))
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
