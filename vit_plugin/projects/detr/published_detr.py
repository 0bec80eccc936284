"""DETR, Conditional DETR and Deformable DETR in the form of transformers."""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import (
    COCO_ROWS,
    Classes,
    Published,
    detector_settings,
    filled,
    told,
)

KINDS = {'detr': 'DETR', 'conditional_detr': 'ConditionalDETR', 'deformable_detr': 'DeformableDETR'}
# What MMDetection's detectors compute.
COMPUTED = dict(activation_function='relu', position_embedding_type='sine', auxiliary_loss=False)
DEFAULTS = dict(
    attention_dropout=0.0,
    dropout=0.1,
    encoder_attention_heads=8,
    decoder_attention_heads=8,
    dilation=False,
    two_stage=False,
    two_stage_num_proposals=300,
    with_box_refine=False,
)
DEFORMABLE = 'deformable_detr'
DIMS = 256  # of the encodings of references, in MMDetection
MOST_BOXES = 100  # of a prediction by sigmoids
DEPTHS: dict[
    tuple[tuple[int, ...], bool], int
] = {  # by the number of blocks, and whether these are bottlenecks
    ((2, 2, 2, 2), False): 18,
    ((3, 4, 6, 3), False): 34,
    ((3, 4, 6, 3), True): 50,
    ((3, 4, 23, 3), True): 101,
    ((3, 8, 36, 3), True): 152,
}


def detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if it is one that MMDetection's detectors do not compute.
    """
    name = KINDS.get(published.kind)
    kinds = told(published.config, 'architectures', Sequence[str], ())
    if not name or not all(kind.endswith('ForObjectDetection') for kind in kinds):
        return None
    config = filled(published.config, DEFAULTS)
    _check(published, config)
    of_levels, two_stages = published.kind == DEFORMABLE, config['two_stage']
    levels = published.shape('level_embed')[0] if of_levels else 1
    queries = (
        config['two_stage_num_proposals']
        if two_stages
        else published.shape('query_embedding.weight')[0]
    )
    head, classes = _head(published, queries)
    for part in ('encoder', 'decoder'):
        heads = config[f'{part}_attention_heads']
        if heads < 1 or head['embed_dims'] % heads:
            raise ConfigError(
                f'its config.json has {part}_attention_heads={heads}, which must divide its '
                f'{head["embed_dims"]} channels'
            )
    coders = {
        f'{coder}coder': _coder(published, config, f'{coder}coder', head['embed_dims'], levels)
        for coder in ('en', 'de')
    }
    model: Section = dict(
        type=name,
        num_queries=queries,
        **_maps(published, config, head['embed_dims'], levels),
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
    return _settings(published, model, classes), classes


def _head(published: Published, queries: int) -> tuple[Section, list[str]]:
    """Arguments of the head, and the names of its classes."""
    layer = 'cls_branches.0' if published.kind == DEFORMABLE else 'fc_cls'
    rows, dims = published.shape(f'bbox_head.{layer}.weight')
    rows -= published.kind == 'detr'  # the last is no object
    names = published.names or ({} if rows in COCO_ROWS else {i: f'class {i}' for i in range(rows)})
    classes = Classes(rows, names)
    if not classes.names:
        raise ConfigError('its config.json names none of its classes in id2label; give their names')
    head = dict(
        num_classes=len(classes.names),
        num_queries=queries,
        embed_dims=dims,
        unused_rows=classes.unused,
    )
    return head, classes.names


def _maps(published: Published, config: Mapping[str, Any], dims: int, levels: int) -> Section:
    """Backbone, neck and positions."""
    blocks = tuple(published.count(f'backbone.layer{i}.') for i in range(1, 5))
    depth = DEPTHS.get((blocks, 'backbone.layer1.0.conv3.weight' in published.ours))
    if depth is None:
        raise ConfigError(f'its backbone is no known ResNet, with {blocks} blocks; give another')
    of_levels, stages = published.kind == DEFORMABLE, range(4 - min(levels, 3), 4)
    return dict(
        backbone=dict(
            type='vit_plugin.FrozenResNet',
            depth=depth,
            out_indices=list(stages),
            dilated=config['dilation'] or _stride(config) == 16,
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


def _check(published: Published, config: Mapping[str, Any]) -> None:
    """Raise a ``ConfigError`` about what MMDetection's detector computes in another way."""
    said = {**COMPUTED, **{name: config[name] for name in COMPUTED if name in config}}
    if published.kind == DEFORMABLE:  # whose queries are not normed for this loss
        said['auxiliary_loss'] = False
    other = {name: value for name, value in said.items() if value != COMPUTED[name]}
    backbone = told(config, 'backbone_config', Mapping, {})
    kind = told(backbone, 'model_type', str, 'timm_backbone')
    if kind != 'timm_backbone':
        other['backbone_config.model_type'] = kind
    if _stride(config) not in (16, 32):
        other['backbone_config.output_stride'] = _stride(config)
    for name in ('dropout', 'attention_dropout'):
        if not 0 <= config[name] <= 1:
            other[name] = config[name]
    of_width = published.kind == 'conditional_detr' or config['two_stage']
    if of_width and told(config, 'd_model', int, DIMS) != DIMS:
        other['d_model'] = config['d_model']
    if other:
        listed = ', '.join(f'{name}={value!r}' for name, value in other.items())
        raise ConfigError(
            f'its config.json has {listed}, which the detectors of MMDetection do not compute; '
            'give a model on a ResNet of timm, with ReLU, sine positions, 256 channels and '
            'auxiliary_loss=False'
        )
    ours = published.ours
    used = {key for step in ours.steps.values() for key in step.theirs}
    left = [
        key
        for key in published.weights
        if key not in used and not ours.format.why_ignored(key, ours.prefix)
    ]
    if left:
        raise ConfigError(f'it has {left[0]}, which MMDetection does not; give another model')


def _stride(config: Mapping[str, Any]) -> int:
    """Pixels between the positions of the last stage of the backbone."""
    return told(told(config, 'backbone_config', Mapping, {}), 'output_stride', int, 32)


def _coder(
    published: Published, config: Mapping[str, Any], coder: str, dims: int, levels: int
) -> Section:
    """The encoder or the decoder."""
    kind, is_decoder = published.kind, coder == 'decoder'
    shared = dict(embed_dims=dims, num_heads=config[f'{coder}_attention_heads'])
    drop, attn_drop = config['dropout'], config['attention_dropout']
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
        points = rows // (shared['num_heads'] * levels)
        attentions[f'{name}_cfg'] = dict(shared, num_levels=levels, num_points=points, dropout=drop)
    if not is_decoder:
        del attentions['cross_attn_cfg']
    width = published.shape(f'{coder}.layers.0.ffn.layers.0.0.weight')[0]
    return dict(
        num_layers=published.count(f'{coder}.layers.'),
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
    """The config, whose test resizes images as transformers does."""
    size = told(published.processor, 'size', Mapping, {})
    pixels, shortest = published.pixels(800), told(published.processor, 'size', PositiveInt, 800)
    keeps = not {'height', 'width'} <= {*size}
    if keeps:
        longest = told(published.processor, 'max_size', PositiveInt, 1333)
        sides = (('longest_edge', longest), ('shortest_edge', shortest))
        pixels['size'] = tuple(told(size, name, PositiveInt, side) for name, side in sides)
    settings = detector_settings(model, classes, padded=1 if keeps else None, **pixels)
    resize = settings['test_dataloader']['dataset']['pipeline'][1]
    resize['backend'] = 'pillow'  # which smooths what it shrinks
    return settings
