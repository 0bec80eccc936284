"""The naming table of MMPretrain's Vision Transformers.

For the rules see :mod:`vit_plugin.weights.formats`.
"""

from ..rules import COMPUTED, Format, Rule, pair, same
from ..traits import GELU, SILU, KnownNumerics, is_deit3, is_gated
from .timm import NORM_EPS

MMPRETRAIN = Format(
    'mmpretrain',
    (
        *same('cls_token', 'dist_token', 'pos_embed', 'patch_embed.norm.{rest}'),
        *pair('patch_embed.projection.', 'patch_embed.proj'),
        *pair('pre_norm.', 'norm_pre'),
        *pair('layers.{i}.(ln1|norm1).', 'blocks.{i}.norm1'),
        *pair('layers.{i}.attn.qkv.', 'blocks.{i}.attn.qkv'),
        *pair('layers.{i}.attn.proj.', 'blocks.{i}.attn.proj'),
        *pair('layers.{i}.(ln2|norm2).', 'blocks.{i}.norm2'),
        # The second name is ViTEVA02's.
        *pair('layers.{i}.(ffn|mlp).w12.', 'blocks.{i}.mlp.fc1', written=is_gated),
        *pair('layers.{i}.(ffn|mlp).w3.', 'blocks.{i}.mlp.fc2', written=is_gated),
        *pair('layers.{i}.mlp.norm.', 'blocks.{i}.mlp.norm'),
        *pair('layers.{i}.ffn.layers.0.0.', 'blocks.{i}.mlp.fc1'),
        *pair('layers.{i}.ffn.layers.1.', 'blocks.{i}.mlp.fc2'),
        Rule('layers.{i}.attn.gamma1.weight', 'blocks.{i}.ls1.gamma'),
        Rule('layers.{i}.ffn.gamma2.weight', 'blocks.{i}.ls2.gamma'),
        *pair('ln1.', 'norm'),
        *pair('ln2.', 'fc_norm'),  # for out_type='avg_featmap'
        Rule('head.layers.{rest}', 'head.layers.{rest}'),
    ),
    prefixes=('backbone.', ''),
    outside=('head.',),
    known_numerics=(*NORM_EPS, SILU, KnownNumerics(GELU, lacking={'norm_pre', 'gated'})),
    notes=(
        (
            is_deit3,
            "MMPretrain's DeiT3 applies ln1 where the authors apply ln2. The authors' weights "
            'that it converted are right here. Weights that it trained compute something else, '
            'unless ln1 is copied to ln2 first',
        ),
    ),
    ignored={'rope.freqs_(cos|sin)': COMPUTED, 'layers.{i}.attn.rope.freqs_(cos|sin)': COMPUTED},
)
