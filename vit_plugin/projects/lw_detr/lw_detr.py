"""The tables of LW-DETR and RF-DETR: backbone, projector and decoder of a detector.

The names of the files come first: those that ``save_pretrained`` of transformers writes by its
``conversion_mapping``, which for RF-DETR are the authors'. The others are those of transformers'
modules.
"""

from vit_plugin.weights.formats.hugging_face import HF_DINOV2
from vit_plugin.weights.formats.plain_block import plain_block
from vit_plugin.weights.rules import ROW_MORE, Format, Rule, Transform, pair, separate_qkv
from vit_plugin.weights.traits import EPS_1E_6, GELU, KnownNumerics

# For a class token, which LW-DETR lacks.
_UNUSED_ROW = Transform(lambda x: x[:, 1:], ROW_MORE.backward)
_H = 'bbox_head.'
_OURS = 'bbox_head.layers.{i}'
_BLOCK = 'encoder.layer.{i}'

# Of the decoder and of its layers: names in files of RF-DETR, names in transformers' modules, and
# ours.
_DECODER = (
    ('refpoint_embed', 'model.reference_point_embed', 'reference'),
    ('query_feat', 'model.query_feat', 'content'),
    ('transformer.enc_output', 'model.enc_output', 'proposal_fc'),
    ('transformer.enc_output_norm', 'model.enc_output_norm', 'proposal_norm'),
    ('transformer.enc_out_class_embed', 'model.enc_out_class_embed', 'proposal_cls'),
    ('transformer.enc_out_bbox_embed', 'model.enc_out_bbox_embed', 'proposal_reg'),
    ('transformer.decoder.norm', 'model.decoder.layernorm', 'norm'),
    ('transformer.decoder.ref_point_head', 'model.decoder.ref_point_head', 'position'),
    ('class_embed', 'class_embed', 'fc_cls'),
    ('bbox_embed', 'bbox_embed', 'fc_reg'),
)
_LAYERS = 'transformer.decoder.layers', 'model.decoder.layers'
_LAYER = (
    ('self_attn.out_proj', 'self_attn.o_proj', 'self_attn.out_proj'),
    ('norm1', 'self_attn_layer_norm', 'norms.0'),
    ('cross_attn', 'cross_attn', 'cross_attn'),
    ('norm2', 'cross_attn_layer_norm', 'norms.1'),
    ('linear1', 'mlp.fc1', 'mlp.0'),
    ('linear2', 'mlp.fc2', 'mlp.3'),
    ('norm3', 'layer_norm', 'norms.2'),
)


def _decoder(of_files: bool) -> tuple[Rule, ...]:
    """Rules of the decoder, which read names of files and modules but write only one of the two."""

    def name(*names: str) -> str:
        return f'({"|".join(names if of_files else names[::-1])})'

    layer = f'{name(*_LAYERS)}.{{i}}'
    thirds = tuple(f'{layer}.self_attn.{part}_proj.{{rest}}' for part in 'qkv')
    whole, ours = f'{layer}.self_attn.in_proj_{{rest}}', f'{_OURS}.self_attn.in_proj_{{rest}}'
    return (
        *(
            Rule(f'{name(file, module)}.{{rest}}', f'{_H}{ours}.{{rest}}')
            for file, module, ours in _DECODER
        ),
        Rule(whole, ours, written=of_files),
        Rule(thirds, ours, written=not of_files),
        *(
            Rule(f'{layer}.{name(file, module)}.{{rest}}', f'{_OURS}.{ours}.{{rest}}')
            for file, module, ours in _LAYER
        ),
    )


_OUTSIDE = ('model.', 'transformer.', *(f'{file}.' for file, *_ in _DECODER))
_NUMERICS = (KnownNumerics(GELU | EPS_1E_6),)
_SCALE, _LEVEL = 'model.backbone.projector.scale_layers.{i}', 'neck.levels.{i}'
_BOTTLENECK = 'c2f.bottlenecks.{j}.{k}'

_QUERY, _KEY, _VALUE = (f'(attention.{word}|{word[0]}_proj)' for word in ('query', 'key', 'value'))

HF_LW_DETR = Format(
    'hf_lw_detr',
    (
        Rule('embeddings.position_embeddings', 'pos_embed', _UNUSED_ROW),
        *pair('embeddings.projection.', 'patch_embed.proj'),
        *plain_block(
            _BLOCK,
            'layernorm_before',
            'attention.(output|o_proj)',
            'layernorm_after',
            'intermediate.fc1',
            'intermediate.fc2',
        ),
        Rule(f'{_BLOCK}.gamma_{{k}}', 'blocks.{i}.ls{k}.gamma'),
        *separate_qkv(f'{_BLOCK}.attention.', (_QUERY, _KEY, _VALUE)),
        Rule(f'{_BLOCK}.attention.{_QUERY}.bias', 'blocks.{i}.attn.qkv.q_bias'),
        Rule(f'{_BLOCK}.attention.{_VALUE}.bias', 'blocks.{i}.attn.qkv.v_bias'),
        Rule(
            f'{_SCALE}.sampling_layers.{{j}}.layers.{{k}}.{{rest}}',
            f'{_LEVEL}.resize.{{j}}.{{k}}.{{rest}}',
        ),
        Rule(
            f'{_SCALE}.projector_layer.bottlenecks.{{j}}.conv{{k+1}}.{{rest}}',
            f'{_LEVEL}.{_BOTTLENECK}.{{rest}}',
        ),
        Rule(f'{_SCALE}.projector_layer.{{rest}}', f'{_LEVEL}.c2f.{{rest}}'),
        *pair(f'{_SCALE}.layer_norm.', f'{_LEVEL}.norm'),
        *_decoder(of_files=False),
    ),
    ('model.backbone.backbone.',),
    _OUTSIDE,
    _NUMERICS,
)

_SAMPLING = 'backbone.0.projector.stages_sampling.{i}.{j}.0'


def _projector(c2f: str, norm: str, level: str, written: bool) -> tuple[Rule, ...]:
    """The rules of a level of RF-DETR's projector, whose C2f and norm have these names."""
    bottleneck, ours = f'{c2f}.(m|bottlenecks).{{j}}.(cv|conv){{k+1}}', f'{level}.{_BOTTLENECK}'
    conv, its = f'{c2f}.(cv|conv){{k}}', f'{level}.c2f.conv{{k}}'
    return (
        Rule(f'{bottleneck}.(bn|norm).{{rest}}', f'{ours}.norm.{{rest}}', written=written),
        Rule(f'{bottleneck}.{{rest}}', f'{ours}.{{rest}}', written=written),
        Rule(f'{conv}.(bn|norm).{{rest}}', f'{its}.norm.{{rest}}', written=written),
        Rule(f'{conv}.{{rest}}', f'{its}.{{rest}}', written=written),
        *pair(f'{norm}.', f'{level}.norm', written=written),
    )


_IN_FILES, _IN_MODULES = 'backbone.0.projector.stages.{i}', 'model.backbone.projector'
HF_RF_DETR = Format(
    'hf_rf_detr',
    (
        *HF_DINOV2.rules,
        # In files there may be several levels, and in modules one.
        *_projector(f'{_IN_FILES}.0', f'{_IN_FILES}.1', _LEVEL, written=True),
        *_projector(
            f'{_IN_MODULES}.projector_layer',
            f'{_IN_MODULES}.layer_norm',
            'neck.levels.0',
            written=False,
        ),
        Rule('segmentation_head.{rest}', 'bbox_head.masks.{rest}'),
        Rule(f'{_SAMPLING}.bn.{{rest}}', f'{_LEVEL}.resize.{{j}}.0.norm.{{rest}}'),
        Rule(f'{_SAMPLING}.{{rest}}', f'{_LEVEL}.resize.{{j}}.0.{{rest}}'),
        *_decoder(of_files=True),
    ),
    ('backbone.0.encoder.encoder.', 'model.backbone.backbone.'),
    ('backbone.0.projector.', 'segmentation_head.', *_OUTSIDE),
    _NUMERICS,
    ignored=HF_DINOV2.ignored,
)
