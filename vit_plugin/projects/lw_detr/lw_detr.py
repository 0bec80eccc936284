"""The tables of LW-DETR and RF-DETR: backbone, projector and decoder of a detector.

The names of the files come first: those that ``save_pretrained`` of transformers writes by its
``conversion_mapping``, which for RF-DETR are the authors'. The others are those of transformers'
modules.
"""

from vit_plugin.weights.rules import (
    ROW_MORE,
    Format,
    Rule,
    Transform,
    pair,
    separate_qkv,
)
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
    whole = tuple(
        Rule(
            f'{layer}.self_attn.in_proj_{kind}',
            f'{_OURS}.self_attn.in_proj_{kind}',
            written=of_files,
        )
        for kind in ('weight', 'bias')
    )
    thirds = tuple(
        Rule(
            tuple(f'{layer}.self_attn.{part}_proj.{kind}' for part in 'qkv'),
            f'{_OURS}.self_attn.in_proj_{kind}',
            written=not of_files,
        )
        for kind in ('weight', 'bias')
    )
    return (
        *(
            Rule(f'{name(file, module)}.{{rest}}', f'{_H}{ours}.{{rest}}')
            for file, module, ours in _DECODER
        ),
        *whole,
        *thirds,
        *(
            Rule(f'{layer}.{name(file, module)}.{{rest}}', f'{_OURS}.{ours}.{{rest}}')
            for file, module, ours in _LAYER
        ),
    )


def _encoder(norms: tuple[str, str], mlp: str, scale: str, out: str) -> tuple[Rule, ...]:
    """The rules of the blocks, with these names of the parts that differ."""
    query, key, value = (f'(attention.{word}|{word[0]}_proj)' for word in ('query', 'key', 'value'))
    return (
        *(
            rule
            for k in (1, 2)
            for rule in (
                *pair(f'{_BLOCK}.{norms[k - 1]}.', f'blocks.{{i}}.norm{k}'),
                Rule(f'{_BLOCK}.{scale.format(k=k)}', f'blocks.{{i}}.ls{k}.gamma'),
                *pair(f'{_BLOCK}.{mlp}.fc{k}.', f'blocks.{{i}}.mlp.fc{k}'),
            )
        ),
        *separate_qkv(f'{_BLOCK}.attention.', (query, key, value)),
        *(
            Rule(f'{_BLOCK}.attention.{theirs}.bias', f'blocks.{{i}}.attn.qkv.{ours}_bias')
            for theirs, ours in ((query, 'q'), (value, 'v'))
        ),
        *pair(f'{_BLOCK}.attention.({out}|o_proj).', 'blocks.{i}.attn.proj'),
    )


_OUTSIDE = ('model.', 'transformer.', *(f'{file}.' for file, *_ in _DECODER))
_NUMERICS = (KnownNumerics(GELU | EPS_1E_6),)
_SCALE, _LEVEL = 'model.backbone.projector.scale_layers.{i}', 'neck.levels.{i}'
_BOTTLENECK = 'c2f.bottlenecks.{j}.{k}'

HF_LW_DETR = Format(
    'hf_lw_detr',
    (
        Rule('embeddings.position_embeddings', 'pos_embed', _UNUSED_ROW),
        *pair('embeddings.projection.', 'patch_embed.proj'),
        *_encoder(('layernorm_before', 'layernorm_after'), 'intermediate', 'gamma_{k}', 'output'),
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

# RF-DETR's projector: C2f, norm and level in files, of which there may be several, and in modules.
_PROJECTORS = (
    ('backbone.0.projector.stages.{i}.0', 'backbone.0.projector.stages.{i}.1', _LEVEL),
    (
        'model.backbone.projector.projector_layer',
        'model.backbone.projector.layer_norm',
        'neck.levels.0',
    ),
)
_SAMPLING = 'backbone.0.projector.stages_sampling.{i}.{j}.0'


def _projector(c2f: str, norm: str, level: str) -> tuple[Rule, ...]:
    """The rules of a level. Those of files are written."""
    written = 'stages' in c2f
    return (
        *(
            rule
            for theirs, ours in (('conv', 'conv'), ('(bn|norm)', 'norm'))
            for rule in (
                Rule(
                    f'{c2f}.(m|bottlenecks).{{j}}.(cv|conv){{k+1}}.{theirs}.{{rest}}',
                    f'{level}.{_BOTTLENECK}.{ours}.{{rest}}',
                    written=written,
                ),
                Rule(
                    f'{c2f}.(cv|conv){{k}}.{theirs}.{{rest}}',
                    f'{level}.c2f.conv{{k}}.{ours}.{{rest}}',
                    written=written,
                ),
            )
        ),
        *pair(f'{norm}.', f'{level}.norm', written=written),
    )


HF_RF_DETR = Format(
    'hf_rf_detr',
    (
        Rule('embeddings.cls_token', 'cls_token'),
        Rule('embeddings.position_embeddings', 'pos_embed'),
        *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
        *_encoder(('norm1', 'norm2'), 'mlp', 'layer_scale{k}.lambda1', 'output.dense'),
        *pair('layernorm.', 'norm'),
        *(rule for names in _PROJECTORS for rule in _projector(*names)),
        Rule('segmentation_head.{rest}', 'bbox_head.masks.{rest}'),
        Rule(f'{_SAMPLING}.conv.{{rest}}', f'{_LEVEL}.resize.{{j}}.0.conv.{{rest}}'),
        Rule(f'{_SAMPLING}.bn.{{rest}}', f'{_LEVEL}.resize.{{j}}.0.norm.{{rest}}'),
        Rule(f'{_SAMPLING}.{{rest}}', f'{_LEVEL}.resize.{{j}}.0.{{rest}}'),
        *_decoder(of_files=True),
    ),
    ('backbone.0.encoder.encoder.', 'model.backbone.backbone.'),
    ('backbone.0.projector.', 'segmentation_head.', *_OUTSIDE),
    _NUMERICS,
    ignored={'embeddings.mask_token': 'of masked pre-training'},
)
