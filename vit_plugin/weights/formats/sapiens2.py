"""The naming table of the authors' Sapiens 2.

Its attention has fewer keys and values than queries, in three layers that our ``qkv`` joins. For
the rules see :mod:`vit_plugin.weights.formats`.
"""

from ..rules import COMPUTED, Format, Rule, pair, same, separate_qkv
from ..traits import SILU

SAPIENS2 = Format(
    'sapiens2',
    (
        Rule('storage_tokens', 'reg_token'),
        *same(
            'cls_token',
            'blocks.{i}.attn.proj.{rest}',
            'blocks.{i}.attn.q_norm.{rest}',
            'blocks.{i}.attn.k_norm.{rest}',
        ),
        *pair('patch_embed.projection.', 'patch_embed.proj'),
        *(Rule(f'blocks.{{i}}.ln{k}.{{rest}}', f'blocks.{{i}}.norm{k}.{{rest}}') for k in (1, 2)),
        *separate_qkv('blocks.{i}.attn.', ('wq', 'wk', 'wv')),
        Rule('blocks.{i}.attn.gamma.weight', 'blocks.{i}.ls1.gamma'),
        *pair('blocks.{i}.ffn.w12.', 'blocks.{i}.mlp.fc1'),  # gate and value of SwiGLU
        *pair('blocks.{i}.ffn.w3.', 'blocks.{i}.mlp.fc2'),
        Rule('ln1.{rest}', 'norm.{rest}'),
    ),
    prefixes=('', 'backbone.'),
    known_numerics=(SILU,),
    ignored={'mask_token': 'of masked pre-training', 'rope_embed.periods': COMPUTED},
)
