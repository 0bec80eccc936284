"""The parameter names of transformers' D-FINE, DEIMv2 and RT-DETR, mapped to ours.

The tables map the name of a module in a file (theirs) to that in our model (ours). In a pattern,
``{i}`` is a number, ``{i+1}`` one more than that, ``{rest}`` the rest of the name, and ``(a|b)``
one of two spellings, of which the first is written. A :class:`~vit_plugin.weights.rules.Rule` is
used in both directions.
"""

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor

from vit_plugin.weights.formats.hugging_face import HF_DINOV3
from vit_plugin.weights.rules import Format, Rule

# The CNN of D-FINE and of the small DEIMv2 models, and the parts of each of its convolutions.
HGNET_STEMS = ('stem1', 'stem2a', 'stem2b', 'stem3', 'stem4')
HGNET = {
    **{f'embedder.{name}': f'stem.{name}' for name in HGNET_STEMS},
    'encoder.stages.{i}.downsample': 'stages.{i}.downsample',
    **{
        f'encoder.stages.{{i}}.blocks.{{j}}.{name}': f'stages.{{i}}.blocks.{{j}}.{name}'
        for name in ('layers.{k}.conv{m}', 'layers.{k}', 'aggregation.{k}')
    },
}
LAYER_OF_CNN = {'convolution': 'conv', 'normalization': 'bn', 'lab': 'lab'}
# Attention layers: names in files of 5.x, of earlier versions, and ours.
ATTENTION = {
    'self_attn.(o_proj|out_proj)': 'attn.out_proj',
    'self_attn_layer_norm': 'norms.0',
    'final_layer_norm': 'norms.1',
}
# The MLP of a layer, in D-FINE and DEIMv2, and in RT-DETR: names of 5.x, of earlier versions, ours.
MLP_OF_FINE = {'(mlp.layers.0|fc1)': 'mlp.0', '(mlp.layers.1|fc2)': 'mlp.3'}
MLP_OF_RT_DETR = {'(mlp.fc1|fc1)': 'mlp.0', '(mlp.fc2|fc2)': 'mlp.3'}
HF_DECODER_LAYER_NAMES = {
    **ATTENTION,
    'self_attn.(o_proj|out_proj)': 'self_attn.out_proj',
    'encoder_attn.sampling_offsets': 'cross_attn.sampling_offsets',
    'encoder_attn.attention_weights': 'cross_attn.attention_weights',
    'encoder_attn.value_proj': 'cross_attn.value_proj',
    'encoder_attn.output_proj': 'cross_attn.output_proj',
    'gateway': 'gate',
    'mlp.down_proj': 'mlp.down',
    'encoder_attn_layer_norm': 'norms.2',
}
# The head outside of its decoder layers.
HF_HEAD_NAMES = {
    'enc_output.0': 'proposal_fc',
    'enc_output.1': 'proposal_norm',
    'enc_score_head': 'proposal_cls',
    'enc_bbox_head': 'proposal_reg',
    'denoising_class_embed': 'noised_classes',
    'decoder.query_pos_head': 'position',
    'decoder.pre_bbox_head': 'fc_first',
    'decoder.lqe_layers.{i}.reg_conf': 'quality.{i}.mlp',
}
# The fusion blocks of the neck: `kind` of `HybridEncoder` is elan, csp or split.
ELAN = {
    'conv1': 'conv1',
    'csp_rep{k}': 'csp{k}.0',
    'conv2': 'csp1.1',
    'conv3': 'csp2.1',
    'conv4': 'conv2',
}
CSP = {name: name for name in ('conv1', 'conv2', 'conv3', 'bottlenecks')}
SPLIT = {'conv1': 'conv1', 'csp_rep{k}': 'csp{k}.0', 'conv2': 'conv2'}
LITE_ENCODER = {
    'input_proj.{i}': 'projections.{i}',
    **{name: name for name in ('down_conv1', 'down_conv2', 'bi_fusion_conv')},
}
# The classifiers and box MLPs, which files may also store outside of the decoder.
HEADS_OF_LAYERS = ('class_embed.', 'bbox_embed.')
UNUSED_NAMES = {
    'decoder.layers.{i}.encoder_attn.(num|n)_points_scale': 'it follows from the points',
    **{f'{name}{{rest}}': 'the decoder has the same layers' for name in HEADS_OF_LAYERS},
}


def prefixed_rules(
    theirs: str,
    ours: str,
    names: Mapping[str, str],
    written: bool | Callable[..., bool] = True,
) -> Iterator[Rule]:
    """A rule for each module in ``names``, with the prefixes ``theirs`` and ``ours``."""
    for their_name, our_name in names.items():
        yield Rule(f'{theirs}{their_name}.{{rest}}', f'{ours}{our_name}.{{rest}}', written=written)


def _self_attention(theirs: str, ours: str) -> Iterator[Rule]:
    """Rules for separate queries, keys and values, which are one array in torch's attention."""
    for parameter in ('weight', 'bias'):
        names = tuple(f'{theirs}self_attn.{part}_proj.{parameter}' for part in 'qkv')
        yield Rule(names, f'{ours}in_proj_{parameter}')


def _cnn(start: str) -> Iterator[Rule]:
    """Rules for HGNetV2, whose names begin with ``start``."""
    for theirs, ours in HGNET.items():
        yield from prefixed_rules(f'{start}{theirs}.', f'backbone.{ours}.', LAYER_OF_CNN)


def _resnet(start: str) -> Iterator[Rule]:
    """Rules for RT-DETR's ResNet-D.

    A shortcut that halves the map begins with a pooling, so its convolution and norm have the
    numbers 1 and 2. Those of the first stage have no pooling in transformers.
    """
    parts = (('convolution', 'conv', 0), ('normalization', 'bn', 1))
    for theirs, ours, k in parts:
        for i in range(3):
            name = f'{start}embedder.embedder.{i}.{theirs}.{{rest}}'
            yield Rule(name, f'backbone.stem.{3 * i + k}.{{rest}}')
        block = f'{start}encoder.stages.{{i}}.layers.{{j}}.'
        our_block = 'backbone.layer{i+1}.{j}.'
        name = f'{block}layer.{{m}}.{theirs}.{{rest}}'
        yield Rule(name, f'{our_block}{ours}{{m+1}}.{{rest}}')
        first_shortcut = f'{start}encoder.stages.0.layers.{{j}}.shortcut.{theirs}.{{rest}}'
        yield Rule(first_shortcut, f'backbone.layer1.{{j}}.downsample.{k + 1}.{{rest}}')
        shortcut = f'{block}shortcut.1.{theirs}.{{rest}}'
        yield Rule(shortcut, f'{our_block}downsample.{k + 1}.{{rest}}')


def _encoder(
    projections: str,
    fusion: Mapping[str, str],
    is_deimv2: bool,
    mlp: Mapping[str, str] = MLP_OF_FINE,
) -> Iterator[Rule]:
    """Rules for the hybrid encoder, and for DEIMv2's lite one.

    Args:
        projections: pattern of the projections of the backbone's maps.
        fusion: names in a fusion block.
        is_deimv2: whether it is DEIMv2's, which may be lite.
        mlp: names in the MLP of an attention layer.
    """
    start = 'encoder.'
    layer, own = f'{start}(aifi|encoder).{{i}}.layers.{{j}}.', 'neck.attentions.{i}.{j}.'
    yield from _self_attention(layer, f'{own}attn.')
    yield from prefixed_rules(layer, own, {**ATTENTION, **mlp})
    yield from _projection(projections, 'neck.projections.{i}', is_deimv2, _is_not_lite)
    yield Rule(f'{start}lateral_convs.{{i}}.{{rest}}', 'neck.laterals.{i}.{rest}')
    yield Rule(f'{start}downsample_convs.{{i}}.conv{{k+1}}.{{rest}}', 'neck.downs.{i}.{k}.{rest}')
    for part in ('conv', 'norm'):  # RT-DETR's names
        down = f'downsample_convs.{{i}}.{part}.{{rest}}'
        yield Rule(f'{start}{down}', f'neck.downs.{{i}}.{part}.{{rest}}')
    for theirs, ours in (('fpn_blocks', 'top_down'), ('pan_blocks', 'bottom_up')):
        yield from prefixed_rules(f'{start}{theirs}.{{i}}.', f'neck.{ours}.{{i}}.', fusion)
    if is_deimv2:
        yield from prefixed_rules(start, 'neck.', LITE_ENCODER)
        for theirs, ours in (('fpn_block', 'top_down'), ('pan_block', 'bottom_up')):
            yield from prefixed_rules(f'{start}{theirs}.', f'neck.{ours}.', fusion)


def _projection(
    theirs: str, ours: str, is_deimv2: bool, written: bool | Callable[..., bool] = True
) -> Iterator[Rule]:
    """A convolution and its norm. DEIMv2's files name them, and the others number them."""
    for k, part in enumerate(('conv', 'norm')):
        name = f'{theirs}.{part if is_deimv2 else k}.{{rest}}'
        yield Rule(name, f'{ours}.{part}.{{rest}}', written=written)


def _is_not_lite(state: Mapping[str, Tensor]) -> bool:
    """Whether a state to write has the hybrid encoder; the lite one writes its own names."""
    return 'neck.bi_fusion_conv.conv.weight' not in state


def _head(is_deimv2: bool, mlp: Mapping[str, str] = MLP_OF_FINE) -> Iterator[Rule]:
    """Rules for the head, see :func:`_encoder`."""
    own = 'bbox_head.'
    yield from prefixed_rules('', own, HF_HEAD_NAMES)
    yield from _projection('decoder_input_proj.{i}', f'{own}projections.{{i}}', is_deimv2)
    yield Rule('decoder.up', f'{own}up')
    yield Rule('decoder.reg_scale', f'{own}scale')
    for theirs, ours in (('class_embed', 'fc_cls'), ('bbox_embed', 'fc_reg')):
        name = f'(decoder.{theirs}|{theirs}).{{i}}.{{rest}}'
        yield Rule(name, f'{own}{ours}.{{i}}.{{rest}}')
    layer, ours = 'decoder.layers.{i}.', f'{own}layers.{{i}}.'
    yield from _self_attention(layer, f'{ours}self_attn.')
    gated = tuple(f'{layer}mlp.{name}_proj.{{rest}}' for name in ('gate', 'up'))
    yield Rule(gated, f'{ours}mlp.gate_up.{{rest}}')
    yield from prefixed_rules(layer, ours, {**HF_DECODER_LAYER_NAMES, **mlp})


def _adapter() -> Iterator[Rule]:
    """Rules for DEIMv2's CNN next to a ViT, and for the projections of both together."""
    start = 'conv_encoder.'
    yield Rule(f'{start}spatial_tuning_adapter.stem_conv.{{rest}}', 'detail.0.{rest}')
    yield Rule(f'{start}spatial_tuning_adapter.conv{{i+1}}.{{rest}}', 'detail.{i}.{rest}')
    yield Rule(f'{start}fusion_proj.{{i}}.{{rest}}', 'fusions.{i}.{rest}')


# Beginnings of the names outside of DEIMv2's ViT, which alone has the prefix of `HF_DEIMV2`.
DETECTOR_PREFIXES = (
    'encoder.',
    'decoder.',
    'decoder_input_proj.',
    'enc_',
    'denoising_',
    'conv_encoder.',
)
HF_D_FINE = Format(
    'hf_d_fine',
    (
        *_cnn('backbone.model.'),
        *_encoder('encoder_input_proj.{i}', ELAN, is_deimv2=False),
        *_head(is_deimv2=False),
    ),
    prefixes=('model.', ''),  # without a prefix: files of the model without its heads
    outside=HEADS_OF_LAYERS,
    ignored=UNUSED_NAMES,
)
HF_RT_DETR = Format(
    'hf_rt_detr',
    (
        *_resnet('backbone.model.'),
        *_encoder('encoder_input_proj.{i}', CSP, is_deimv2=False, mlp=MLP_OF_RT_DETR),
        *_head(is_deimv2=False, mlp=MLP_OF_RT_DETR),
    ),
    prefixes=('model.', ''),  # without a prefix: files of the model without its heads
    outside=HEADS_OF_LAYERS,
    ignored=UNUSED_NAMES,
)
HF_DEIMV2_CNN = Format(
    'hf_deimv2_cnn',
    (
        *_cnn('conv_encoder.model.'),
        *_encoder('conv_encoder.encoder_input_proj.{i}', SPLIT, is_deimv2=True),
        *_head(is_deimv2=True),
    ),
    prefixes=('model.', ''),  # without a prefix: files of the model without its heads
    outside=HEADS_OF_LAYERS,
    ignored=UNUSED_NAMES,
)
HF_DEIMV2 = Format(
    'hf_deimv2',
    (
        *HF_DINOV3.rules,
        *_adapter(),
        *_encoder('conv_encoder.encoder_input_proj.{i}', SPLIT, is_deimv2=True),
        *_head(is_deimv2=True),
    ),
    prefixes=('conv_encoder.backbone.',),
    outside=DETECTOR_PREFIXES,
    known_numerics=HF_DINOV3.known_numerics,
    ignored={**HF_DINOV3.ignored, **UNUSED_NAMES},
)
