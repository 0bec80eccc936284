"""The naming tables of timm, also for weights that their authors publish under such names.

These are MAE, DeiT-III, DINOv2, DINOv3 and EVA-02. For the rules see
:mod:`vit_plugin.weights.formats`.
"""

from ..rules import COMPUTED, Format, Rule, pair, same
from ..traits import EPS_1E_5, EPS_1E_6, GELU, SILU, KnownNumerics
from .eva import EVA, SPELLINGS, TWO_GATES, VITAMIN, fits_vision_transformer
from .own import LAYER_NAMES, RESNET_NAMES, TOKENS

# The eps of the norms, where it is certain. The conditions exclude BEiT-3 (`attn_norm`), AIMv2 (no
# `norm_bias`) and DINOv3 (no `pos_embed`), each of which has a different eps.
NORM_EPS = (
    KnownNumerics(EPS_1E_6, having={'pos_embed', 'norm_bias'}, lacking={'norm_pre', 'attn_norm'}),
    KnownNumerics(EPS_1E_5, having={'norm_pre', 'norm_bias'}),
)

OFFSETS = 'the offsets of patches'  # the reason why such keys may stay unused
_LAYERS = (
    # In the hybrid whose ResNet has no stages, timm's backbone is our stem.
    *(
        Rule(
            f'patch_embed.backbone.{part}.{{rest}}',
            f'patch_embed.backbone.stem.{part}.{{rest}}',
            unless='patch_embed.backbone.stages.',
        )
        for part in ('conv', 'norm')
    ),
    *same(
        *TOKENS,
        *LAYER_NAMES[1:],  # without 'blocks.{rest}', which each format below adds
        *RESNET_NAMES,
        'rope.freqs',
        'rel_pos_bias.relative_position_bias_table',
        'patch_embed.norm.{rest}',
        'patch_embed.backbone.{rest}',
    ),
    Rule('attn_pool.{rest}', 'neck.attn_pool.{rest}'),
    Rule('fc_norm.{rest}', 'neck.norm.{rest}'),
    *pair('head.', 'head.layers.head'),
    *pair('head_dist.', 'head.layers.head_dist'),
)

# timm, and the authors' MAE, DeiT-III, DINOv2, DINOv3 and EVA-02, which use the same layer names.
TIMM = Format(
    'timm',
    (
        *SPELLINGS,
        *VITAMIN,
        *TWO_GATES,
        Rule('blocks.{rest}', 'blocks.{rest}', written=fits_vision_transformer),
        *_LAYERS,
    ),
    prefixes=('', 'encoder.', 'model.', 'visual.trunk.', 'timm_model.', 'backbone.'),
    known_numerics=(
        *NORM_EPS,
        SILU,
        # SigLIP has no class token, CLIP has a norm before the blocks. Some models of both have a
        # different GELU.
        KnownNumerics(GELU, having={'cls_token', 'norm_bias'}, lacking={'norm_pre', 'gated'}),
        KnownNumerics(
            dict(stem_norm_cfg=dict(eps=1e-5), stem_conv_cfg=dict(eps=1e-8, eps_inside_root=True)),
            having={'hybrid'},
        ),
    ),
    ignored={
        'mask_token': 'of masked pre-training',
        'decoder_{rest}': 'decoder of masked pre-training',
        'lm_head.{rest}': 'of masked pre-training',
        'local_cls_norm.{rest}': 'of pre-training with crops',
        'rope.freqs_(cos|sin)': COMPUTED,
        'rope_embed.periods': COMPUTED,
        'blocks.{i}.attn.rope.freqs_(cos|sin)': COMPUTED,
        'blocks.{i}.attn.qkv.bias_mask': 'the bias of the keys is zero',
        'rel_pos_bias.relative_position_index': OFFSETS,
        'blocks.{i}.attn.relative_position_index': OFFSETS,
    },
)

# timm's class Eva has some other names. For reading, the rules above cover them.
TIMM_EVA = Format(
    'timm_eva', (*EVA, *TWO_GATES, *same('blocks.{rest}'), *_LAYERS), known_numerics=(SILU,)
)
