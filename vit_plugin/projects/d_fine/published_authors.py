"""Read D-FINE, DEIM, DEIMv2, ECDet and ECSeg from their authors' files, which have no settings.

Sizes are inferred from the tensors. Everything else is the same in all published models, except for
the activations of a D-FINE that DEIM trained: the name of the file decides these.
"""

from collections.abc import Sequence

import torch

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_settings import detector_settings

from .authors_arrays import (
    ENCODER_HEADS,
    USUAL_QUERIES,
    USUAL_SIZE,
    is_rarer_model,
    read_hgnet,
    read_points,
)
from .published_fine_head import detected_class_names

MARKS = (  # tensors that all of these models have
    'decoder.pre_bbox_head.layers.0.weight',
    'decoder.dec_score_head.0.weight',
)
ECDET_KEY = 'projections.2.conv.weight'  # only ECDet has this key, by our names
GATED_MLP_KEY = 'bbox_head.layers.0.mlp.gate_up.weight'  # only DEIMv2 has this key, by our names
MASK_KEY = 'bbox_head.masks.bias'  # only ECSeg has this key, by our names
# Models with the lite encoder: its channels -> queries, image side in pixels.
LITE_QUERIES_AND_SIDES = {64: (100, 320), 96: (150, 416), 112: (200, 640)}
DINOV3_ROTARY = dict(type='none', rotary=dict(form='centred', planes='halves', temperature=100.0))


def authors(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a detector, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if the tensors do not fit any supported model.
    """
    if not all(name in published.weights for name in MARKS):
        return None
    ours = published.ours
    if 'detail.0.conv.weight' in ours:
        backbone, channels = _adapter(published)
    elif ECDET_KEY in ours:
        backbone, channels = _ecvit(published)
    else:
        backbone, channels = read_hgnet(published)
    is_cnn = backbone['type'].endswith('HGNetV2')
    neck = _encoder(published, channels)
    queries, side = USUAL_QUERIES, USUAL_SIZE
    is_lite = neck['type'].endswith('LiteEncoder')
    if is_lite:
        queries, side = LITE_QUERIES_AND_SIDES.get(neck['out_channels'], (queries, side))
    levels = max(len(channels), 2)  # the lite encoder makes two maps of one
    head, classes = _head(published, [neck['out_channels']] * levels, queries)
    if is_lite:  # its box losses are RT-DETR's
        head['distributions'] |= dict(localization=0.0, distillation=0.0)
        head['joint_matching'] = False
    has_masks = MASK_KEY in ours
    if has_masks:
        # The authors' evaluation refines the map of the masks only once.
        head |= dict(type='vit_plugin.ECSegHead', predicted_blocks=1)
        del head['loss_cls']
    model = dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)
    model['test_cfg'] = dict(max_per_img=queries)
    pixels = published.pixels(side, normalized=not is_cnn)
    return detector_settings(model, classes, masks=has_masks, **pixels), classes


def _adapter(published: Published) -> tuple[Section, list[int]]:
    """DEIMv2's backbone, and the channels of its maps.

    The transformer in it is a small one of the authors, or DINOv3 with registers.
    """
    backbone = encoder_section(published)
    # `bias_mask` sets the bias of the keys to zero, which it is in these files.
    published.unused |= {name for name in published.ours if name.endswith('.qkv.bias_mask')}
    layers = backbone['arch']['num_layers']
    has_norm = 'norm.weight' in published.ours
    backbone['encoder']['final_norm'] = has_norm
    backbone['numerics']['norm_cfg'] = dict(eps=1e-5 if has_norm else 1e-6)
    # Twelfths of the blocks after which maps are taken: DINOv3, or the authors' transformer.
    ends = (6, 9, 12) if has_norm else (4, 8, 12)
    dims = published.shape('fusions.0.conv.weight')[0]
    return dict(
        backbone,
        type='vit_plugin.SpatialTuningAdapter',
        img_size=USUAL_SIZE,
        out_channels=dims,
        conv_inplane=published.shape('detail.0.conv.weight')[0],
        out_indices=[layers * end // 12 - 1 for end in ends],
        pos_embed=DINOV3_ROTARY,
    ), [dims] * 3


def _ecvit(published: Published) -> tuple[Section, list[int]]:
    """ECDet's backbone, and the channels of its maps."""
    width = published.shape('reg_token')[-1]
    arch = dict(
        embed_dims=width,
        num_layers=published.count('blocks.'),
        num_heads=width // 64,  # all of its heads have 64 channels
        feedforward_channels=published.shape('blocks.0.mlp.fc1.weight')[0],
    )
    convs = [published.shape(f'patch_embed.backbone.{i}.conv.weight')[0] for i in range(4)]
    projects_all = 'projections.0.conv.weight' in published.ours
    dims = published.shape(ECDET_KEY)[0]
    return dict(
        type='vit_plugin.ECViT',
        arch=arch,
        patch_embed=dict(
            type='ConvEmbed',
            channels=convs,
            strides=[2] * 4,
            kernel_sizes=[3] * 4,
            conv_act='ReLU',
        ),
        pos_embed=DINOV3_ROTARY,
        with_cls_token=False,
        encoder=dict(reg_token=1, final_norm=False),
        numerics='timm',
        out_channels=dims if projects_all else None,
    ), [dims] * 3


def _encoder(published: Published, channels: Sequence[int]) -> Section:
    """The neck. ECDet uses SiLU instead of GELU in its attention layers."""
    ours = published.ours
    is_lite = 'neck.bi_fusion_conv.conv.weight' in ours
    block = 'neck.top_down.' if is_lite else 'neck.top_down.0.'
    dims = published.shape(f'{block}conv2.conv.weight')[0]
    width = published.shape(f'{block}csp2.0.conv1.conv.weight')[1]
    trailing = f'{block}csp1.0.conv2.conv.weight' in ours
    common = dict(
        in_channels=list(channels),
        out_channels=dims,
        depth=published.count(f'{block}csp1.0.bottlenecks.') / 3,
        # The encoder computes expansion * dims // 2. Half a channel more keeps that at `width`.
        expansion=(2 * width + 1) / dims,
    )
    if is_lite:
        return dict(common, type='vit_plugin.LiteEncoder', trailing=trailing)
    projects = 'neck.projections.0.conv.weight' in ours
    if f'{block}csp1.1.conv.weight' in ours:
        kind = 'elan'
    else:
        kind = 'split_trailing' if trailing else 'split'
    return dict(
        common,
        type='vit_plugin.HybridEncoder',
        kind=kind,
        num_layers=published.count('neck.attentions.0.'),
        num_heads=ENCODER_HEADS,
        feedforward_channels=published.shape('neck.attentions.0.0.mlp.0.weight')[0],
        attention_act='SiLU' if ECDET_KEY in ours else 'GELU',
        projects=projects,
    )


def _head(published: Published, channels: Sequence[int], queries: int) -> tuple[Section, list[str]]:
    """The head, and the names of its classes."""
    rows, dims = published.shape('bbox_head.proposal_cls.weight')
    variant = _variant(published)
    has_noised_classes = 'bbox_head.noised_classes.weight' in published.ours
    head = dict(
        type='vit_plugin.DFINEHead',
        num_classes=rows,
        num_queries=queries,
        in_channels=list(channels),
        embed_dims=dims,
        variant=variant,
        decoder=_decoder(published),
        distributions=_distributions(published),
        noise=dict(number=100 if has_noised_classes else 0),
    )
    if variant != 'd_fine':
        head['loss_cls'] = dict(type='vit_plugin.MatchabilityAwareLoss')
    return head, detected_class_names(published, rows)


def _variant(published: Published) -> str:
    """The row of ``DECODER_VARIANTS``."""
    if 'bbox_head.proposal_fc.weight' in published.ours:
        title = 'a D-FINE that DEIM trained'
        is_deim = is_rarer_model(published, word='deim', usual='dfine', title=title)
        return 'd_fine_deim' if is_deim else 'd_fine'
    return 'deimv2' if GATED_MLP_KEY in published.ours else 'ecdet'


def _decoder(published: Published) -> Section:
    """The ``decoder`` of a head, see ``FineDecoderCfg``."""
    layer, points = 'bbox_head.layers.0', read_points(published)
    # An x and a y for each sampling point of each head.
    num_offsets = published.shape(f'{layer}.cross_attn.sampling_offsets.weight')[0]
    if GATED_MLP_KEY in published.ours:  # SwiGLU, whose branches have half the channels each
        width = 2 * published.shape(f'{layer}.mlp.down.weight')[1]
    else:
        width = published.shape(f'{layer}.mlp.0.weight')[0]
    return dict(
        num_layers=published.count('bbox_head.layers.'),
        num_heads=num_offsets // (2 * sum(points)),
        num_points=points,
        feedforward_channels=width,
        gated=f'{layer}.gate.gate.weight' in published.ours,
    )


def _distributions(published: Published) -> Section:
    """The ``distributions`` of a ``DFINEHead``."""
    ours, num_edge_mlps = published.ours, published.count('bbox_head.fc_reg.')
    lacks_mlps = num_edge_mlps < published.count('bbox_head.layers.')
    return dict(
        # The output has bins + 1 logits for each of four edges.
        bins=published.shape('bbox_head.fc_reg.0.layers.2.weight')[0] // 4 - 1,
        up=float(ours['bbox_head.up']),
        scale=float(ours['bbox_head.scale']),
        shared=lacks_mlps or _repeats_mlp(published),
    )


def _repeats_mlp(published: Published) -> bool:
    """Whether the file stores the same MLP for the distributions of several layers."""
    first, second = (f'bbox_head.fc_reg.{i}.layers.2.weight' for i in range(2))
    ours = published.ours
    return second in ours and torch.equal(ours[first], ours[second])
