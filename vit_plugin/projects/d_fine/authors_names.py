"""Parameter names in authors' files of RT-DETR, D-FINE, DEIM, DEIMv2 and ECDet, mapped to ours.

One format covers all of them. Where the files of two models disagree, a
:class:`~vit_plugin.weights.rules.Rule` has conditions: ``when`` and ``unless`` for the keys of a
file that is read, and ``written`` for the state that is written. ``d_fine_names.py`` explains the
patterns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from vit_plugin.weights.formats.timm import TIMM
from vit_plugin.weights.rules import COMPUTED, CONSTANT, Format, Rule

from .d_fine_names import CSP, prefixed_rules

# Names in the attention layers of both the encoder and the decoder.
ATTENTION_LAYER_NAMES = {'linear1': 'mlp.0', 'linear2': 'mlp.3', 'swish_ffn.w12': 'mlp.gate_up'}
ENCODER_LAYER = {
    **ATTENTION_LAYER_NAMES,
    'self_attn.out_proj': 'attn.out_proj',
    'norm1': 'norms.0',
    'norm2': 'norms.1',
}
DECODER_LAYER_NAMES = {
    **ATTENTION_LAYER_NAMES,
    'swish_ffn.w3': 'mlp.down',
    'self_attn.out_proj': 'self_attn.out_proj',
    'cross_attn.sampling_offsets': 'cross_attn.sampling_offsets',
    'cross_attn.attention_weights': 'cross_attn.attention_weights',
    'cross_attn.value_proj': 'cross_attn.value_proj',
    'cross_attn.output_proj': 'cross_attn.output_proj',
    'gateway.gate': 'gate.gate',
}
HEAD_NAMES = {
    'enc_output.proj': 'proposal_fc',
    'enc_output.norm': 'proposal_norm',
    'enc_score_head': 'proposal_cls',
    'enc_bbox_head': 'proposal_reg',
    'denoising_class_embed': 'noised_classes',
    'query_pos_head': 'position',
    'pre_bbox_head': 'fc_first',
    'decoder.lqe_layers.{i}.reg_conf': 'quality.{i}.mlp',
    'dec_score_head.{i}': 'fc_cls.{i}',
    'dec_bbox_head.{i}': 'fc_reg.{i}',
    'input_proj.{i}': 'projections.{i}',
    'decoder.segmentation_head': 'masks',
}
# A fusion block, whose two CSP blocks have the same names as ours.
FUSING = {'cv1': 'conv1', 'cv4': 'conv2', 'cv{k+1}.0': 'csp{k}.0'}
ENCODER_NAMES = {
    'input_proj.{i}': 'projections.{i}',
    'lateral_convs.{i}': 'laterals.{i}',
    'downsample_convs.{i}.0.cv{k+1}': 'downs.{i}.{k}',
    **{f'downsample_convs.{{i}}.{part}': f'downs.{{i}}.{part}' for part in ('conv', 'norm')},
    'bi_fusion.cv': 'bi_fusion_conv',
    'down_sample{k}.1': 'down_conv{k}.conv',
    'down_sample{k}.2': 'down_conv{k}.norm',
}
# Names of the first RT-DETR for the same modules.
FIRST_ENCODER_NAMES = {
    f'input_proj.{{i}}.{k}': f'projections.{{i}}.{part}' for k, part in enumerate(('conv', 'norm'))
}
FIRST_HEAD_NAMES = {'enc_output.0': 'proposal_fc', 'enc_output.1': 'proposal_norm'}
# HGNetV2 in RT-DETRv2; elsewhere its names are the same as ours.
RT_DETR_HGNET = {
    **{f'stem.{name}.conv.1': f'stem.{name}.conv' for name in ('stem2a', 'stem2b')},
    'stages.{i}.blocks.{j}.aggregation_squeeze_conv': 'stages.{i}.blocks.{j}.aggregation.0',
    'stages.{i}.blocks.{j}.aggregation_excitation_conv': 'stages.{i}.blocks.{j}.aggregation.1',
}
ADAPTER_NAMES = {
    **{
        f'sta.{name}.{first + k}': f'detail.{i}.{part}'
        for i, (name, first) in enumerate((('stem', 0), ('conv2', 0), ('conv3', 1), ('conv4', 1)))
        for k, part in enumerate(('conv', 'norm'))
    },
    'convs.{i}': 'fusions.{i}.conv',
    'norms.{i}': 'fusions.{i}.norm',
}


def _encoder() -> Iterator[Rule]:
    """Rules for the hybrid encoder, and for DEIMv2's lite one."""
    layer, ours = 'encoder.encoder.{i}.layers.{j}.', 'neck.attentions.{i}.{j}.'
    yield Rule(f'{layer}self_attn.in_proj_{{rest}}', f'{ours}attn.in_proj_{{rest}}')
    yield from prefixed_rules(layer, ours, ENCODER_LAYER)
    yield from prefixed_rules('encoder.', 'neck.', FIRST_ENCODER_NAMES, written=False)
    yield from prefixed_rules('encoder.', 'neck.', ENCODER_NAMES)
    for theirs, ours in (('fpn_block', 'top_down'), ('pan_block', 'bottom_up')):
        yield from _fusion_block(f'encoder.{theirs}s.{{i}}.', f'neck.{ours}.{{i}}.')
        yield from _fusion_block(f'encoder.{theirs}.', f'neck.{ours}.')  # DEIMv2's lite encoder


def _fusion_block(theirs: str, ours: str) -> Iterator[Rule]:
    """Rules for a fusion block.

    Our 3 x 3 convolutions are inside DEIMv2's CSP blocks, and after those of the other models.
    """
    elan = '.cv2.0.conv2.'  # not in files of DEIMv2, whose CSP blocks lack `conv2`
    for part in ('conv', 'norm'):
        name = f'{theirs}cv{{k+1}}.1.{part}.{{rest}}'
        yield Rule(name, f'{ours}csp{{k}}.1.{part}.{{rest}}', when=elan)
        inside = f'{ours}csp{{k}}.0.conv2.{part}.{{rest}}'
        yield Rule(name, inside, unless=elan, written=_is_not_elan)
    yield from prefixed_rules(theirs, ours, FUSING, _is_not_csp)
    yield from prefixed_rules(theirs, ours, CSP, _is_csp)


# Conditions on a state to write, by our names, for rules of some models only.
def _is_csp(state: Mapping[str, Tensor]) -> bool:
    return not _is_not_csp(state)


def _is_not_csp(state: Mapping[str, Tensor]) -> bool:
    return any('.csp1.' in name for name in state)


def _is_not_elan(state: Mapping[str, Tensor]) -> bool:
    return not any('.csp1.1.' in name for name in state)


def _is_ecdet(state: Mapping[str, Tensor]) -> bool:
    return 'projections.2.conv.weight' in state


def _is_not_ecdet(state: Mapping[str, Tensor]) -> bool:
    return not _is_ecdet(state)


def _projects_only_last(state: Mapping[str, Tensor]) -> bool:
    return 'projections.0.conv.weight' not in state


def _has_rms_norm(state: Mapping[str, Tensor]) -> bool:
    return any('.mlp.gate_up.' in name for name in state)


def _decoder() -> Iterator[Rule]:
    """Rules for the head and its decoder layers."""
    for theirs, own in (('up', 'up'), ('reg_scale', 'scale')):
        yield Rule(f'decoder.{theirs}', f'bbox_head.{own}', CONSTANT)
    layer, ours = 'decoder.decoder.layers.{i}.', 'bbox_head.layers.{i}.'
    yield Rule(f'{layer}self_attn.in_proj_{{rest}}', f'{ours}self_attn.in_proj_{{rest}}')
    yield from prefixed_rules(layer, ours, DECODER_LAYER_NAMES)
    third_norm = '.layers.0.norm3.'  # in the files of all models but ECDet
    parameters: tuple[tuple[str, str, Any], ...] = (
        ('scale', 'weight', _has_rms_norm),  # DEIMv2's RMSNorms name it so
        ('{rest}', '{rest}', True),
    )
    for theirs, own, written in parameters:
        yield Rule(f'{layer}norm1.{theirs}', f'{ours}norms.0.{own}', written=written)
        yield Rule(f'{layer}gateway.norm.{theirs}', f'{ours}gate.norm.{own}', written=written)
        name = f'{layer}norm2.{theirs}'
        yield Rule(name, f'{ours}norms.2.{own}', when=third_norm, written=written)
    # The norm after the MLP is norm2 in ECDet's files, and norm3 in the others.
    yield Rule(f'{layer}norm3.scale', f'{ours}norms.1.weight', written=_has_rms_norm)
    yield Rule(f'{layer}norm3.{{rest}}', f'{ours}norms.1.{{rest}}', written=_is_not_ecdet)
    yield Rule(f'{layer}norm2.{{rest}}', f'{ours}norms.1.{{rest}}', unless=third_norm)
    yield from prefixed_rules('decoder.', 'bbox_head.', HEAD_NAMES)
    yield from prefixed_rules('decoder.', 'bbox_head.', FIRST_HEAD_NAMES, written=False)


def _resnet() -> Iterator[Rule]:
    """Rules for RT-DETR's ResNet-D, see ``d_fine_names.py``."""
    block, our_block = 'backbone.res_layers.{i}.blocks.{j}.', 'backbone.layer{i+1}.{j}.'
    for k, (theirs, ours) in enumerate((('conv', 'conv'), ('norm', 'bn'))):
        for i in range(3):
            stem = f'backbone.conv1.conv1_{i + 1}.{theirs}.{{rest}}'
            yield Rule(stem, f'backbone.stem.{3 * i + k}.{{rest}}')
        for i, letter in enumerate('abc', 1):
            name = f'{block}branch2{letter}.{theirs}.{{rest}}'
            yield Rule(name, f'{our_block}{ours}{i}.{{rest}}')
        first_shortcut = f'backbone.res_layers.0.blocks.{{j}}.short.{theirs}.{{rest}}'
        yield Rule(first_shortcut, f'backbone.layer1.{{j}}.downsample.{k + 1}.{{rest}}')
        name = f'{block}short.conv.{theirs}.{{rest}}'
        yield Rule(name, f'{our_block}downsample.{k + 1}.{{rest}}')


def _backbones() -> Iterator[Rule]:
    """Rules for HGNetV2, ResNet-D, DINOv3 with DEIMv2's adapter, and ECViT."""
    yield from _resnet()
    for theirs, own in RT_DETR_HGNET.items():
        yield Rule(f'backbone.{theirs}.{{rest}}', f'backbone.{own}.{{rest}}', written=False)
    for part in ('stem', 'stages'):
        yield Rule(f'backbone.{part}.{{rest}}', f'backbone.{part}.{{rest}}')
    yield from prefixed_rules('backbone.', '', ADAPTER_NAMES)
    start = 'backbone.backbone.'
    name = f'{start}patch_embed.proj.{{rest}}'
    yield Rule(name, 'patch_embed.backbone.3.conv.{rest}', when='.patch_embed.convs.')
    for theirs, ours in (('conv', 'conv'), ('norm', 'bn')):
        name = f'{start}patch_embed.convs.{{i}}.{theirs}.{{rest}}'
        yield Rule(name, f'patch_embed.backbone.{{i}}.{ours}.{{rest}}')
    yield Rule(f'{start}register_token', 'reg_token')
    projects_all = '.projector.1.'  # otherwise ECViT projects only its last map
    only, last = 'backbone.projector.0.{rest}', 'projections.2.{rest}'
    yield Rule(only, last, unless=projects_all, written=_projects_only_last)
    yield Rule('backbone.projector.{i}.{rest}', 'projections.{i}.{rest}', when=projects_all)
    yield Rule(f'{start}blocks.{{rest}}', 'blocks.{rest}')
    for rule in TIMM.rules:
        names = (rule.theirs,) if isinstance(rule.theirs, str) else rule.theirs
        prefixed = tuple(f'backbone.dinov3.(_model.|){name}' for name in names)
        yield replace(rule, theirs=prefixed, written=False)


AUTHORS = Format(
    'd_fine_authors',
    (*_encoder(), *_decoder(), *_backbones()),
    ignored={
        'decoder.(anchors|valid_mask)': 'it follows from the size of the images',
        'decoder.decoder.layers.{i}.cross_attn.num_points_scale': 'it follows from the points',
        'backbone.(backbone|dinov3|dinov3._model).rope_embed.periods': COMPUTED,
        'backbone.dinov3.mask_token': 'of masked pre-training',
    },
)
