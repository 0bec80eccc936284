"""Our own names: timm's for the backbone, ``neck.`` and ``head.layers.`` for the rest."""

from vit_plugin.project import declared

from ..rules import GRID, Format, Rule, same

# Names that other formats share.
TOKENS = ('cls_token', 'dist_token', 'reg_token', 'pos_embed')
LAYER_NAMES = tuple(
    f'{part}.{{rest}}' for part in ('blocks', 'norm', 'norm_pre', 'patch_embed.proj')
)
RESNET_NAMES = tuple(f'patch_embed.backbone.{part}.{{rest}}' for part in ('stem', 'stages'))

OWN = Format(
    'vit_plugin',
    (
        *same(
            *TOKENS,
            GRID,
            'rope.freqs',
            'rel_pos_bias.{rest}',
            'norm.{rest}',
            'norm_pre.{rest}',
            'fc_norm.{rest}',
            'blocks.{rest}',
            'patch_embed.{rest}',
            'tuning.{rest}',
            'head.layers.{rest}',
            *(f'neck.{part}.{{rest}}' for part in ('attn_pool', 'norm', 'levels', 'extra_levels')),
            'bbox_head.{rest}',
        ),
        *(Rule(name, name, when=text) for name, text in declared('names').items()),
    ),
    prefixes=('', 'backbone.'),
    outside=('head.', 'neck.', 'bbox_head.', 'decode_head.'),
)
