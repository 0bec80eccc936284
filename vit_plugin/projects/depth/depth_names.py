"""The names of DPT and Depth Anything in transformers."""

from collections.abc import Mapping

from torch import Tensor

from vit_plugin.weights.formats.hugging_face import HF, HF_DINOV2
from vit_plugin.weights.rules import Format, Rule, pair
from vit_plugin.weights.traits import traits

_BIT = 'embeddings.backbone.bit'
_NECK = (
    *pair('neck.reassemble_stage.readout_projects.{i}.0.', 'decode_head.reassemble.{i}.read'),
    Rule('neck.reassemble_stage.layers.{i}.{rest}', 'decode_head.reassemble.{i}.{rest}'),
    Rule('neck.convs.{i}.weight', 'decode_head.convs.{i}.weight'),
    *pair('neck.fusion_stage.layers.{i}.projection.', 'decode_head.fusion.{i}.projection'),
    *(
        Rule(
            f'neck.fusion_stage.layers.{{i}}.residual_layer{{k}}.{theirs}{n}.{{rest}}',
            f'decode_head.fusion.{{i}}.unit{{k}}.{ours}{n}.{{rest}}',
        )
        for n in (1, 2)
        for theirs, ours in (('convolution', 'conv'), ('batch_norm', 'norm'))
    ),
)
_OUTSIDE = ('neck.', 'head.')


def _is_hybrid(state: Mapping[str, Tensor]) -> bool:
    return 'hybrid' in traits(state)


HF_DPT = Format(
    'hf_dpt',
    (
        *_NECK,
        *(
            rule
            for k in (0, 1, 2)
            for rule in pair(f'head.head.{2 * k}.', f'decode_head.conv{k + 1}')
        ),
        Rule(f'{_BIT}.embedder.convolution.weight', 'patch_embed.backbone.stem.conv.weight'),
        *pair(f'{_BIT}.embedder.norm.', 'patch_embed.backbone.stem.norm'),
        Rule(
            f'{_BIT}.encoder.stages.{{i}}.layers.{{rest}}',
            'patch_embed.backbone.stages.{i}.blocks.{rest}',
        ),
        *pair('embeddings.projection.', 'patch_embed.proj', written=_is_hybrid),
        *HF.rules,
    ),
    ('dpt.',),
    _OUTSIDE,
    known_numerics=HF.known_numerics,
    ignored={'layernorm.{rest}': 'of the last tokens, which the decoder does not read'},
)

HF_DEPTH_ANYTHING = Format(
    'hf_depth_anything',
    (
        *_NECK,
        Rule('head.conv{i}.{rest}', 'decode_head.conv{i}.{rest}'),
        *HF_DINOV2.rules,
    ),
    ('backbone.',),
    _OUTSIDE,
    known_numerics=HF_DINOV2.known_numerics,
    ignored=HF_DINOV2.ignored,
)
