"""DETR, Conditional DETR and Deformable DETR in the format of transformers."""

from collections.abc import Mapping, Sequence

from vit_plugin.arguments.fields import Fraction, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import (
    COCO_ROWS,
    DetectorClasses,
    stated_names,
)
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published, get_typed
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import inner_backbone

from .detr_kinds import DETR_KINDS, TIMM_BACKBONE_KIND

DETECTOR_NAMES = {
    'detr': 'DETR',
    'conditional_detr': 'ConditionalDETR',
    'deformable_detr': 'DeformableDETR',
}
DEFORMABLE = 'deformable_detr'
DIMS = 256  # width of reference encodings in MMDetection
RESNET_STAGES = [
    'act1',
    *(f'layer{i}' for i in range(1, 5)),
]  # timm's names of what a ResNet returns
DILATED = (50, 101, 152)  # depths of ResNets whose last stage may be dilated here
MOST_BOXES = 100  # boxes per image of models with sigmoid scores
DEPTHS: dict[
    tuple[tuple[int, ...], bool], int
] = {  # (number of blocks, whether they are bottlenecks) -> depth
    ((2, 2, 2, 2), False): 18,
    ((3, 4, 6, 3), False): 34,
    ((3, 4, 6, 3), True): 50,
    ((3, 4, 23, 3), True): 101,
    ((3, 8, 36, 3), True): 152,
}


def detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if MMDetection's detectors do not support it.
    """
    name = DETECTOR_NAMES.get(published.kind)
    if not name:
        return None
    class_name = f'{name.replace("DETR", "Detr")}ForObjectDetection'
    config = published.described_by(DETR_KINDS[published.kind], class_name)
    if config is None:
        return None
    timm = _timm(config)
    of_levels = published.kind == DEFORMABLE
    two_stages = of_levels and config['two_stage']
    levels = published.shape('level_embed')[0] if of_levels else 1
    queries = _queries(published, config, two_stages)
    head, classes = _head(published, queries)
    dims = head['embed_dims']
    config.agree(d_model=dims, num_feature_levels=levels)
    if published.kind == 'conditional_detr' or two_stages:
        config.only('d_model', DIMS)
    maps = _maps(published, config, timm, dims, levels)
    coders = {
        f'{coder}coder': _coder(published, config, f'{coder}coder', dims, levels)
        for coder in ('en', 'de')
    }
    model: Section = dict(
        type=name,
        num_queries=queries,
        **maps,
        **coders,
        bbox_head=dict(head, type=f'vit_plugin.Published{name}Head'),
        test_cfg=dict(max_per_img=queries if name == 'DETR' else MOST_BOXES),
    )
    if of_levels:
        refines = config['with_box_refine']
        model |= dict(num_feature_levels=levels, with_box_refine=refines, as_two_stage=two_stages)
        model['decoder']['post_norm_cfg'] = None
        only_first = published.count('bbox_head.cls_branches.') == 1
        model['bbox_head']['shared_classes'] = refines and only_first
    config.check()
    _check_weights(published)
    return _settings(published, model, classes), classes


def _queries(published: Published, config: ForeignConfig, two_stages: bool) -> int:
    """The number of queries."""
    if two_stages:
        config.ignore('num_queries')
        return config.get('two_stage_num_proposals', PositiveInt)
    queries = published.shape('query_embedding.weight')[0]
    config.agree(num_queries=queries)
    config.ignore('two_stage_num_proposals')
    return queries


def _head(published: Published, queries: int) -> tuple[Section, list[str]]:
    """Arguments of the head, and the names of its classes."""
    layer = 'cls_branches.0' if published.kind == DEFORMABLE else 'fc_cls'
    rows, dims = published.shape(f'bbox_head.{layer}.weight')
    rows -= published.kind == 'detr'  # the last row is "no object"
    numbered = {} if rows in COCO_ROWS else {i: f'class {i}' for i in range(rows)}
    classes = DetectorClasses(rows, stated_names(published) or numbered)
    if not classes.names:
        raise ConfigError('its config.json names none of its classes in id2label; give their names')
    head = dict(
        num_classes=len(classes.names),
        num_queries=queries,
        embed_dims=dims,
        unused_rows=classes.unused,
    )
    return head, classes.names


def _timm(config: ForeignConfig) -> ForeignConfig | None:
    """The config of the backbone, a timm ResNet.

    None if only its name is given, as in files of 4.x.
    """
    if config.content.get('backbone_config') is None:
        config.only('use_timm_backbone', True, None)
        return None
    return inner_backbone(config, {'timm_backbone': TIMM_BACKBONE_KIND}, {})


def _maps(
    published: Published, config: ForeignConfig, timm: ForeignConfig | None, dims: int, levels: int
) -> Section:
    """Backbone, neck and positions."""
    blocks = tuple(published.count(f'backbone.layer{i}.') for i in range(1, 5))
    depth = DEPTHS.get((blocks, 'backbone.layer1.0.conv3.weight' in published.ours))
    if depth is None:
        raise ConfigError(f'its backbone is not a known ResNet, with {blocks} blocks; give another')
    of_levels, stages = published.kind == DEFORMABLE, range(4 - min(levels, 3), 4)
    return dict(
        backbone=dict(
            type='vit_plugin.FrozenResNet',
            depth=depth,
            out_indices=list(stages),
            dilated=_is_dilated(config, timm, depth, [i + 1 for i in stages] if of_levels else [4]),
        ),
        neck=dict(
            type='ChannelMapper',
            in_channels=[
                published.shape(f'neck.convs.{i}.conv.weight')[1] for i in range(len(stages))
            ],
            out_channels=dims,
            kernel_size=1,
            norm_cfg=dict(type='GN', num_groups=32) if of_levels else None,
            act_cfg=None,
            bias=True,
            num_outs=levels,
        ),
        positional_encoding=dict(
            num_feats=dims // 2, normalize=True, offset=-0.5 if of_levels else 0.0
        ),
    )


def _is_dilated(
    config: ForeignConfig, timm: ForeignConfig | None, depth: int, maps: list[int]
) -> bool:
    """Whether the last stage keeps the stride of the previous one.

    Args:
        config: of the detector.
        timm: of its backbone, a ResNet of timm. None: the name of one.
        depth: of the ResNet that the weights are of.
        maps: the stages, from 1, whose maps the detector reads.
    """
    config.only('num_channels', 3)
    if timm is None:
        config.only('backbone', None, f'resnet{depth}')
        config.only('backbone_kwargs', None, {})
        return bool(config.get('dilation', bool | None))
    config.ignore('dilation', 'backbone', 'use_timm_backbone')
    if str(timm.get('backbone', str | None)).partition('.')[0] != f'resnet{depth}':
        raise timm.refuse('backbone', why=f'where its weights are those of a resnet{depth}')
    stages = [i % len(RESNET_STAGES) for i in timm.get('out_indices', Sequence[int] | None) or [-1]]
    if (stages[-1:] if maps == [4] else stages) != maps:  # DETR uses only the last map
        raise timm.refuse('out_indices', why=f'where the maps {maps} are read')
    timm.agree(stage_names=RESNET_STAGES, out_features=[RESNET_STAGES[i] for i in stages])
    timm.only('output_stride', None, 16, 32)
    dilated = timm.get('output_stride', int | None) == 16
    if dilated and depth not in DILATED:
        raise timm.refuse('output_stride', why=f'which a resnet{depth} here does not have')
    return dilated


def _check_weights(published: Published) -> None:
    """Raise a ``ConfigError`` if MMDetection's detector lacks some of the weights."""
    ours = published.ours
    used = {key for step in ours.steps.values() for key in step.theirs}
    left = [
        key
        for key in published.weights
        if key not in used and not ours.format.why_ignored(key, ours.prefix)
    ]
    if left:
        raise ConfigError(f'it has {left[0]}, which MMDetection does not; give another model')


def _coder(
    published: Published, config: ForeignConfig, coder: str, dims: int, levels: int
) -> Section:
    """The encoder or the decoder."""
    kind, is_decoder = published.kind, coder == 'decoder'
    heads = config.get(f'{coder}_attention_heads', PositiveInt)
    if dims % heads:
        raise config.refuse(f'{coder}_attention_heads', why=f'which must divide {dims} channels')
    shared = dict(embed_dims=dims, num_heads=heads)
    drop, attn_drop = (config.get(name, Fraction) for name in ('dropout', 'attention_dropout'))
    plain = dict(shared, attn_drop=attn_drop, dropout_layer=dict(type='Dropout', drop_prob=drop))
    attentions: Section = dict(self_attn_cfg=plain, cross_attn_cfg=plain)
    if kind == 'conditional_detr' and is_decoder:
        attentions = {
            f'{part}_attn_cfg': dict(
                shared, attn_drop=attn_drop, proj_drop=drop, cross_attn=part == 'cross'
            )
            for part in ('self', 'cross')
        }
    if kind == DEFORMABLE:
        name = 'cross_attn' if is_decoder else 'self_attn'
        rows = published.shape(f'{coder}.layers.0.{name}.attention_weights.weight')[0]
        points = rows // (heads * levels)
        config.agree(**{f'{coder}_n_points': points})
        attentions[f'{name}_cfg'] = dict(shared, num_levels=levels, num_points=points, dropout=drop)
    if not is_decoder:
        del attentions['cross_attn_cfg']
    width = published.shape(f'{coder}.layers.0.ffn.layers.0.0.weight')[0]
    layers = published.count(f'{coder}.layers.')
    config.agree(**{f'{coder}_layers': layers, f'{coder}_ffn_dim': width})
    return dict(
        num_layers=layers,
        layer_cfg=dict(
            attentions,
            ffn_cfg=dict(
                embed_dims=dims,
                feedforward_channels=width,
                ffn_drop=drop,
                act_cfg=dict(type='ReLU', inplace=True),
            ),
        ),
    )


def _settings(published: Published, model: Section, classes: Sequence[str]) -> Section:
    """The complete config, with a test pipeline that resizes like transformers."""
    size = get_typed(published.processor, 'size', Mapping, {})
    pixels = published.pixels(800)
    shortest = get_typed(published.processor, 'size', PositiveInt, 800)
    keeps = not {'height', 'width'} <= {*size}
    if keeps:
        longest = get_typed(published.processor, 'max_size', PositiveInt, 1333)
        sides = (('longest_edge', longest), ('shortest_edge', shortest))
        pixels['size'] = tuple(get_typed(size, name, PositiveInt, side) for name, side in sides)
    settings = detector_settings(model, classes, padded=1 if keeps else None, **pixels)
    resize = settings['test_dataloader']['dataset']['pipeline'][1]
    resize['backend'] = 'pillow'  # Pillow applies antialiasing
    return settings
