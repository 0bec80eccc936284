"""The naming table of our own checkpoints, whose keys stay as they are.

Our names are timm's for the backbone, and begin with ``neck.`` or ``head.layers.`` for the rest.
Projects add theirs, see :attr:`vit_plugin.project.Project.names`.
"""

from vit_plugin.project import declared_rows

from ..rules import GRID, Format, Rule, same

# Names that timm's format shares.
TOKENS = ('cls_token', 'dist_token', 'reg_token', 'pos_embed')
LAYER_NAMES = ('blocks.{rest}', 'norm.{rest}', 'norm_pre.{rest}', 'patch_embed.proj.{rest}')
RESNET_NAMES = ('patch_embed.backbone.stem.{rest}', 'patch_embed.backbone.stages.{rest}')

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
            'neck.attn_pool.{rest}',
            'neck.norm.{rest}',
            'neck.levels.{rest}',
            'neck.extra_levels.{rest}',
            'bbox_head.{rest}',
        ),
        *(Rule(name, name, when=text) for name, text in declared_rows('names').items()),
    ),
    prefixes=('', 'backbone.'),
    outside=('head.', 'neck.', 'bbox_head.', 'decode_head.'),
)
