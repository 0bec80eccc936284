"""The weight names of LW-DETR and RF-DETR in published files, and ours.

A :class:`~vit_plugin.weights.rules.Rule` maps a pattern of their names to a pattern of ours, and
is used to read and to write. The first rule that matches a name is used.

A model of transformers has two sets of names: those of its modules, and those in its files, which
``save_pretrained`` makes from them by its ``conversion_mapping``. For RF-DETR the names in files
are the authors'. Both are read, and ``written`` chooses the set to write.
"""

from typing import Any

from vit_plugin.weights.formats.hugging_face import HF_DINOV2
from vit_plugin.weights.formats.plain_block import plain_block
from vit_plugin.weights.rules import CLASS_TOKEN_ROW, Format, Rule, Transform, pair, separate_qkv
from vit_plugin.weights.traits import EPS_1E_6, GELU, KnownNumerics

# The decoder: names in files of RF-DETR; names of transformers' modules, which LW-DETR also has in
# its files; and ours, in an LWDETRHead.
_DECODER: tuple[Any, ...] = (
    ('refpoint_embed.{rest}', 'model.reference_point_embed.{rest}', 'reference.{rest}'),
    ('query_feat.{rest}', 'model.query_feat.{rest}', 'content.{rest}'),
    ('transformer.enc_output.{rest}', 'model.enc_output.{rest}', 'proposal_fc.{rest}'),
    ('transformer.enc_output_norm.{rest}', 'model.enc_output_norm.{rest}', 'proposal_norm.{rest}'),
    (
        'transformer.enc_out_class_embed.{rest}',
        'model.enc_out_class_embed.{rest}',
        'proposal_cls.{rest}',
    ),
    (
        'transformer.enc_out_bbox_embed.{rest}',
        'model.enc_out_bbox_embed.{rest}',
        'proposal_reg.{rest}',
    ),
    ('transformer.decoder.norm.{rest}', 'model.decoder.layernorm.{rest}', 'norm.{rest}'),
    (
        'transformer.decoder.ref_point_head.{rest}',
        'model.decoder.ref_point_head.{rest}',
        'position.{rest}',
    ),
    ('class_embed.{rest}', 'class_embed.{rest}', 'fc_cls.{rest}'),
    ('bbox_embed.{rest}', 'bbox_embed.{rest}', 'fc_reg.{rest}'),
    (
        'transformer.decoder.layers.{i}.self_attn.in_proj_{rest}',
        (
            'model.decoder.layers.{i}.self_attn.q_proj.{rest}',
            'model.decoder.layers.{i}.self_attn.k_proj.{rest}',
            'model.decoder.layers.{i}.self_attn.v_proj.{rest}',
        ),
        'layers.{i}.self_attn.in_proj_{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.self_attn.out_proj.{rest}',
        'model.decoder.layers.{i}.self_attn.o_proj.{rest}',
        'layers.{i}.self_attn.out_proj.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.norm1.{rest}',
        'model.decoder.layers.{i}.self_attn_layer_norm.{rest}',
        'layers.{i}.norms.0.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.cross_attn.{rest}',
        'model.decoder.layers.{i}.cross_attn.{rest}',
        'layers.{i}.cross_attn.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.norm2.{rest}',
        'model.decoder.layers.{i}.cross_attn_layer_norm.{rest}',
        'layers.{i}.norms.1.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.linear1.{rest}',
        'model.decoder.layers.{i}.mlp.fc1.{rest}',
        'layers.{i}.mlp.0.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.linear2.{rest}',
        'model.decoder.layers.{i}.mlp.fc2.{rest}',
        'layers.{i}.mlp.3.{rest}',
    ),
    (
        'transformer.decoder.layers.{i}.norm3.{rest}',
        'model.decoder.layers.{i}.layer_norm.{rest}',
        'layers.{i}.norms.2.{rest}',
    ),
)


def _decoder(writes_file_names: bool) -> tuple[Rule, ...]:
    """Rules of the decoder. They read both sets of names.

    Args:
        writes_file_names: whether the names in RF-DETR's files are written, instead of those of
            transformers' modules.
    """
    return tuple(
        Rule(theirs, f'bbox_head.{ours}', written=is_written)
        for file, module, ours in _DECODER
        for theirs, is_written in ((file, writes_file_names), (module, not writes_file_names))
    )


# Beginnings of names that do not have the prefix of the backbone.
_OUTSIDE = (
    'model.',
    'transformer.',
    'refpoint_embed.',
    'query_feat.',
    'class_embed.',
    'bbox_embed.',
    'backbone.0.projector.',
    'segmentation_head.',
)
_SCALE = 'model.backbone.projector.scale_layers.{i}'

HF_LW_DETR = Format(
    'hf_lw_detr',
    (
        # The file's position table has a row for a class token, which the model does not have.
        Rule(
            'embeddings.position_embeddings',
            'pos_embed',
            Transform(lambda x: x[:, 1:], CLASS_TOKEN_ROW.backward),
        ),
        *pair('embeddings.projection.', 'patch_embed.proj'),
        *plain_block(
            'encoder.layer.{i}',
            'layernorm_before',
            'attention.(output|o_proj)',
            'layernorm_after',
            'intermediate.fc1',
            'intermediate.fc2',
        ),
        Rule('encoder.layer.{i}.gamma_{k}', 'blocks.{i}.ls{k}.gamma'),
        *separate_qkv(
            'encoder.layer.{i}.attention.',
            ('(attention.query|q_proj)', '(attention.key|k_proj)', '(attention.value|v_proj)'),
        ),
        Rule(
            'encoder.layer.{i}.attention.(attention.query|q_proj).bias',
            'blocks.{i}.attn.qkv.q_bias',
        ),
        Rule(
            'encoder.layer.{i}.attention.(attention.value|v_proj).bias',
            'blocks.{i}.attn.qkv.v_bias',
        ),
        Rule(
            f'{_SCALE}.sampling_layers.{{j}}.layers.{{k}}.{{rest}}',
            'neck.levels.{i}.resize.{j}.{k}.{rest}',
        ),
        Rule(
            f'{_SCALE}.projector_layer.bottlenecks.{{j}}.conv{{k+1}}.{{rest}}',
            'neck.levels.{i}.c2f.bottlenecks.{j}.{k}.{rest}',
        ),
        Rule(
            f'{_SCALE}.projector_layer.{{rest}}',
            'neck.levels.{i}.c2f.{rest}',
        ),
        *pair(f'{_SCALE}.layer_norm.', 'neck.levels.{i}.norm'),
        *_decoder(writes_file_names=False),
    ),
    prefixes=('model.backbone.backbone.',),
    outside=_OUTSIDE,
    known_numerics=(KnownNumerics(GELU | EPS_1E_6),),
)


def _projector(c2f: str, norm: str, level: str, written: bool) -> tuple[Rule, ...]:
    """The rules of RF-DETR's projector.

    The authors name layers ``cv`` and ``bn``, which are ``conv`` and ``norm`` in transformers.

    Args:
        c2f, norm: their names of the C2f block and the norm.
        level: our name of the level.
        written: see :class:`~vit_plugin.weights.rules.Rule`.
    """
    return (
        Rule(
            f'{c2f}.(m|bottlenecks).{{j}}.(cv|conv){{k+1}}.(bn|norm).{{rest}}',
            f'{level}.c2f.bottlenecks.{{j}}.{{k}}.norm.{{rest}}',
            written=written,
        ),
        Rule(
            f'{c2f}.(m|bottlenecks).{{j}}.(cv|conv){{k+1}}.{{rest}}',
            f'{level}.c2f.bottlenecks.{{j}}.{{k}}.{{rest}}',
            written=written,
        ),
        Rule(
            f'{c2f}.(cv|conv){{k}}.(bn|norm).{{rest}}',
            f'{level}.c2f.conv{{k}}.norm.{{rest}}',
            written=written,
        ),
        Rule(f'{c2f}.(cv|conv){{k}}.{{rest}}', f'{level}.c2f.conv{{k}}.{{rest}}', written=written),
        Rule(f'{norm}.{{rest}}', f'{level}.norm.{{rest}}', written=written),
    )


HF_RF_DETR = Format(
    'hf_rf_detr',
    (
        *HF_DINOV2.rules,
        # Names in files, with any number of levels, and of transformers' modules, which have one.
        *_projector(
            'backbone.0.projector.stages.{i}.0',
            'backbone.0.projector.stages.{i}.1',
            'neck.levels.{i}',
            written=True,
        ),
        *_projector(
            'model.backbone.projector.projector_layer',
            'model.backbone.projector.layer_norm',
            'neck.levels.0',
            written=False,
        ),
        Rule('segmentation_head.{rest}', 'bbox_head.masks.{rest}'),
        Rule(
            'backbone.0.projector.stages_sampling.{i}.{j}.0.bn.{rest}',
            'neck.levels.{i}.resize.{j}.0.norm.{rest}',
        ),
        Rule(
            'backbone.0.projector.stages_sampling.{i}.{j}.0.{rest}',
            'neck.levels.{i}.resize.{j}.0.{rest}',
        ),
        *_decoder(writes_file_names=True),
    ),
    prefixes=('backbone.0.encoder.encoder.', 'model.backbone.backbone.'),
    outside=_OUTSIDE,
    known_numerics=HF_DINOV2.known_numerics,
    ignored=HF_DINOV2.ignored,
)
