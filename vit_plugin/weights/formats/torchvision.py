"""The naming table of torchvision's Vision Transformers.

For the rules see :mod:`vit_plugin.weights.formats`.
"""

from ..rules import Format, Rule, pair
from ..traits import EPS_1E_6, GELU, KnownNumerics
from .plain_block import plain_block

_BLOCK = 'encoder.layers.encoder_layer_{i}'

TORCHVISION = Format(
    'torchvision',
    (
        Rule('class_token', 'cls_token'),
        Rule('encoder.pos_embedding', 'pos_embed'),
        *pair('conv_proj.', 'patch_embed.proj'),
        *pair(f'{_BLOCK}.self_attention.in_proj_', 'blocks.{i}.attn.qkv'),
        *plain_block(
            _BLOCK,
            'ln_1',
            'self_attention.out_proj',
            'ln_2',
            'mlp.(0|linear_1)',
            'mlp.(3|linear_2)',
        ),
        *pair('encoder.ln.', 'norm'),
        *pair('heads.pre_logits.', 'head.layers.pre_logits'),
        *pair('heads.head.', 'head.layers.head'),
    ),
    known_numerics=(KnownNumerics(GELU | EPS_1E_6),),
)
