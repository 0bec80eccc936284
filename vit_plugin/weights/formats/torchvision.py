"""Names of torchvision's Vision Transformers."""

from ..rules import Format, Rule, pair
from ..traits import EPS_1E_6, GELU, KnownNumerics, is_plain

_BLOCK = 'encoder.layers.encoder_layer_{i}'

TORCHVISION = Format(
    'torchvision',
    (
        Rule('class_token', 'cls_token'),
        Rule('encoder.pos_embedding', 'pos_embed'),
        *pair('conv_proj.', 'patch_embed.proj'),
        *pair(f'{_BLOCK}.ln_1.', 'blocks.{i}.norm1'),
        *pair(f'{_BLOCK}.self_attention.in_proj_', 'blocks.{i}.attn.qkv'),
        *pair(f'{_BLOCK}.self_attention.out_proj.', 'blocks.{i}.attn.proj'),
        *pair(f'{_BLOCK}.ln_2.', 'blocks.{i}.norm2'),
        *pair(f'{_BLOCK}.mlp.(0|linear_1).', 'blocks.{i}.mlp.fc1', written=is_plain),
        *pair(f'{_BLOCK}.mlp.(3|linear_2).', 'blocks.{i}.mlp.fc2'),
        *pair('encoder.ln.', 'norm'),
        *pair('heads.pre_logits.', 'head.layers.pre_logits'),
        *pair('heads.head.', 'head.layers.head'),
    ),
    known_numerics=(KnownNumerics(GELU | EPS_1E_6),),
)
