"""Rules for the weights of a ViT-Adapter by our names, the authors' and DINOv3's.

DINOv3's file lacks the backbone. The placeholders of a rule are explained in
:mod:`vit_plugin.weights.patterns`.
"""

from vit_plugin.weights.formats.own import LAYER_NAMES, TOKENS
from vit_plugin.weights.rules import GRID, Format, Rule, same

# The modules of a ViT-Adapter, with the same names in the authors' code and here. A key of the
# backbone begins with `backbone` or, in the authors' files, with none of these names.
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
        # The authors' names of LayerScale, which are only read.
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
    ignored={'segmentation_model.1.{rest}': 'belongs to the segmentation head'},
)
