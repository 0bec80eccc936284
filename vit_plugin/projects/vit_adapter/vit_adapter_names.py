"""The names of ViT-Adapter: ours, the authors' and DINOv3's. DINOv3's file lacks the backbone."""

from vit_plugin.weights.formats.own import LAYER_NAMES, TOKENS
from vit_plugin.weights.rules import GRID, Format, Rule, same

# The modules of a ViT-Adapter, with the same names in the authors' code and here. Keys of the
# backbone begin with ``backbone``, or are all that begin with none of these names.
ADAPTER_MODULES = (
    'backbone',
    'spm',
    'level_embed',
    'interactions',
    'up',
    'norm1',
    'norm2',
    'norm3',
    'norm4',
)

VIT_ADAPTER = Format(
    'vit_adapter',
    (
        Rule('(backbone.|)blocks.{i}.gamma(_|){k}', 'blocks.{i}.ls{k}.gamma', written=False),
        *(
            Rule(f'(backbone.|){name}', name)
            for name in (*TOKENS, *LAYER_NAMES, 'patch_embed.{rest}', 'rope.freqs', GRID)
        ),
        *same(
            'level_embed',
            *(
                f'{part}.{{rest}}'
                for part in ADAPTER_MODULES
                if part not in ('backbone', 'level_embed')
            ),
        ),
    ),
    prefixes=('', 'backbone.', 'segmentation_model.0.'),
    has_backbone=False,
    ignored={'segmentation_model.1.{rest}': 'of the segmentor'},
)
