"""Parameter names of DETR, Conditional DETR and Deformable DETR: transformers' and MMDetection's.

In a pattern, ``{i}`` is a number, ``{i+3}`` three more than that, ``{rest}`` the rest of the name,
and ``(a|b)`` one of two spellings, of which the first is written. A
:class:`~vit_plugin.weights.rules.Rule` is used in both directions.
"""

from vit_plugin.weights.rules import Format, Rule

CONDITIONAL = '.ca_'  # in keys of Conditional DETR, whose layers have MMDetection's names

# Names outside the layers: in files, and in MMDetection's detectors.
MODULE_NAMES = {
    **{
        f'backbone.conv_encoder.model.{name}': f'backbone.{name}'
        for name in (
            'conv1.weight',
            'bn1.{rest}',
            'layer{i}.{j}.conv{k}.weight',
            'layer{i}.{j}.bn{k}.{rest}',
            'layer{i}.{j}.downsample.0.weight',
            'layer{i}.{j}.downsample.1.{rest}',
        )
    },
    'input_projection.{rest}': 'neck.convs.0.conv.{rest}',
    **{
        f'input_proj.{i}.{part}.{{rest}}': f'neck.convs.{i}.{name}.{{rest}}'
        for i in range(3)
        for part, name in enumerate(('conv', 'gn'))
    },
    'input_proj.{i+3}.0.{rest}': 'neck.extra_convs.{i}.conv.{rest}',
    'input_proj.{i+3}.1.{rest}': 'neck.extra_convs.{i}.gn.{rest}',
    'query_position_embeddings.{rest}': 'query_embedding.{rest}',
    'reference_points.{rest}': 'reference_points_fc.{rest}',
    'level_embed': 'level_embed',
    'enc_output.{rest}': 'memory_trans_fc.{rest}',
    'enc_output_norm.{rest}': 'memory_trans_norm.{rest}',
    'pos_trans.{rest}': 'pos_trans_fc.{rest}',
    'pos_trans_norm.{rest}': 'pos_trans_norm.{rest}',
    'decoder.layernorm.{rest}': 'decoder.post_norm.{rest}',
    'decoder.query_scale.{rest}': 'decoder.query_scale.{rest}',
    'decoder.ref_point_head.{rest}': 'decoder.ref_point_head.{rest}',
    'class_labels_classifier.{rest}': 'bbox_head.fc_cls.{rest}',
    'bbox_predictor.layers.0.{rest}': 'bbox_head.reg_ffn.layers.0.0.{rest}',
    'bbox_predictor.layers.1.{rest}': 'bbox_head.reg_ffn.layers.1.{rest}',
    'bbox_predictor.layers.2.{rest}': 'bbox_head.fc_reg.{rest}',
    # If each layer refines boxes, the decoder also contains the layers of the head.
    '(decoder.class_embed|class_embed).{i}.{rest}': 'bbox_head.cls_branches.{i}.{rest}',
    **{
        f'(decoder.bbox_embed|bbox_embed).{{i}}.layers.{j}.{{rest}}': (
            f'bbox_head.reg_branches.{{i}}.{2 * j}.{{rest}}'
        )
        for j in range(3)
    },
}


def _layers(coder: str, attentions: dict[str, str], norms: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules of the layers of an encoder or decoder.

    Args:
        coder: ``'encoder'`` or ``'decoder'``.
        attentions: transformers' names of the attentions -> MMDetection's.
        norms: beginnings of transformers' names of the norms, in MMDetection's order.
    """
    theirs = ours = f'{coder}.layers.{{i}}'
    # Conditional DETR's decoder has a plain linear layer for the output, not torch's attention.
    unless = CONDITIONAL if coder == 'decoder' else ''
    rules = [
        Rule(f'{theirs}.{name}_layer_norm.{{rest}}', f'{ours}.norms.{k}.{{rest}}')
        for k, name in enumerate(norms)
    ]
    rules += [
        Rule(f'{theirs}.fc1.{{rest}}', f'{ours}.ffn.layers.0.0.{{rest}}'),
        Rule(f'{theirs}.fc2.{{rest}}', f'{ours}.ffn.layers.1.{{rest}}'),
    ]
    for their, our in attentions.items():
        rules += [
            *(
                Rule(
                    tuple(f'{theirs}.{their}.{part}_proj.{parameter}' for part in 'qkv'),
                    f'{ours}.{our}.attn.in_proj_{parameter}',
                )
                for parameter in ('weight', 'bias')
            ),
            Rule(
                f'{theirs}.{their}.out_proj.{{rest}}',
                f'{ours}.{our}.attn.out_proj.{{rest}}',
                unless=unless,
            ),
            # In Conditional DETR: sa_... for self_attn, ca_... for cross_attn.
            Rule(f'{theirs}.{our[0]}a_{{rest}}', f'{ours}.{our}.{{rest}}', when=CONDITIONAL),
            Rule(f'{theirs}.{their}.{{rest}}', f'{ours}.{our}.{{rest}}'),
        ]
    return tuple(rules)


HF_DETR = Format(
    'hf_detr',
    (
        *(Rule(theirs, ours) for theirs, ours in MODULE_NAMES.items()),
        *_layers('encoder', dict(self_attn='self_attn'), ('self_attn', 'final')),
        *_layers(
            'decoder',
            dict(self_attn='self_attn', encoder_attn='cross_attn'),
            ('self_attn', 'encoder_attn', 'final'),
        ),
    ),
    prefixes=('model.', ''),  # without a prefix: files of the model without its heads
    outside=('class_labels_classifier.', 'bbox_predictor.', 'class_embed.', 'bbox_embed.'),
    ignored={
        f'{kind}_embed.{{rest}}': 'the decoder has the same layers' for kind in ('bbox', 'class')
    },
)
