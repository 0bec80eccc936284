"""Read DETR, Conditional DETR and Deformable DETR as transformers saves them.

Their ``config.json`` becomes a config of MMDetection's own detectors. Each field of it must be
touched, or loading fails: an unknown value could mean another model. ``config.get(...)`` and
``config[...]`` read a field, ``require`` accepts only the values that MMDetection computes,
``check_agreement`` compares a field with what the weights show, and ``ignore`` skips one without
effect. See :class:`~vit_plugin.weights.foreign_config.ForeignConfig`, and ``detr_kinds.py`` for the
fields.
"""

from collections.abc import Mapping, Sequence

from vit_plugin.arguments.fields import Fraction, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import DetectorClasses, names_of_all_rows
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published, get_typed
from vit_plugin.weights.published_settings import detector_settings

from .detr_kinds import DETR_KINDS
from .published_resnet import find_timm_config, read_resnet

# ``model_type`` -> the class of MMDetection.
DETECTOR_NAMES = {
    'detr': 'DETR',
    'conditional_detr': 'ConditionalDETR',
    'deformable_detr': 'DeformableDETR',
}
DEFORMABLE = 'deformable_detr'
REFERENCE_DIMS = 256  # MMDetection hard-codes this width for encoded reference points
MAX_BOXES = 100  # boxes per image of models with sigmoid scores


def detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DETR, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if MMDetection's detectors do not support the model.
    """
    name = DETECTOR_NAMES.get(published.model_type)
    if not name:
        return None
    class_name = f'{name.replace("DETR", "Detr")}ForObjectDetection'
    config = published.described_by(DETR_KINDS[published.model_type], class_name)
    if config is None:
        return None
    timm_config = find_timm_config(config)
    is_deformable = published.model_type == DEFORMABLE
    two_stages = is_deformable and config['two_stage']
    levels = published.shape('level_embed')[0] if is_deformable else 1
    num_queries = _num_queries(published, config, two_stages)
    head, classes = _head(published, num_queries)
    dims = head['embed_dims']
    config.check_agreement(d_model=dims, num_feature_levels=levels)
    if published.model_type == 'conditional_detr' or two_stages:
        config.require('d_model', REFERENCE_DIMS)
    before_encoder = _before_encoder(published, config, timm_config, dims, levels)
    coders = {
        f'{coder}coder': _coder(published, config, f'{coder}coder', dims, levels)
        for coder in ('en', 'de')
    }
    model: Section = dict(
        type=name,
        num_queries=num_queries,
        **before_encoder,
        **coders,
        bbox_head=dict(head, type=f'vit_plugin.Published{name}Head'),
        test_cfg=dict(max_per_img=num_queries if name == 'DETR' else MAX_BOXES),
    )
    if is_deformable:
        refines = config['with_box_refine']
        model |= dict(num_feature_levels=levels, with_box_refine=refines, as_two_stage=two_stages)
        # MMDetection's deformable decoder raises an error for a post-norm.
        model['decoder']['post_norm_cfg'] = None
        # A file stores tied layers once.
        stored_once = published.count('bbox_head.cls_branches.') == 1
        model['bbox_head']['shared_classes'] = refines and stored_once
    # Also checked later, but an error about a field says more than one about a weight.
    config.check()
    _check_weights(published)
    return _settings(published, model, classes), classes


def _num_queries(published: Published, config: ForeignConfig, two_stages: bool) -> int:
    """The number of queries, which are proposals in a model of two stages."""
    if two_stages:
        config.ignore('num_queries')
        return config.get('two_stage_num_proposals', PositiveInt)
    num_queries = published.shape('query_embedding.weight')[0]
    config.check_agreement(num_queries=num_queries)
    config.ignore('two_stage_num_proposals')
    return num_queries


def _head(published: Published, num_queries: int) -> tuple[Section, list[str]]:
    """Arguments of the head, and the names of its classes."""
    layer = 'cls_branches.0' if published.model_type == DEFORMABLE else 'fc_cls'
    rows, dims = published.shape(f'bbox_head.{layer}.weight')
    if published.model_type == 'detr':
        rows -= 1  # the last row is "no object"
    classes = DetectorClasses(rows, names_of_all_rows(published, rows))
    if not classes.names:
        raise ConfigError('its config.json names none of its classes in id2label; give their names')
    head = dict(
        num_classes=len(classes.names),
        num_queries=num_queries,
        embed_dims=dims,
        unused_rows=classes.unused,
    )
    return head, classes.names


def _before_encoder(
    published: Published,
    config: ForeignConfig,
    timm_config: ForeignConfig | None,
    dims: int,
    levels: int,
) -> Section:
    """The backbone, the neck and the position embeddings.

    Args:
        published: the weights.
        config: the config of the detector.
        timm_config: see :func:`~.published_resnet.find_timm_config`.
        dims: channels of the queries.
        levels: number of maps that the encoder reads.
    """
    is_deformable = published.model_type == DEFORMABLE
    stages = range(4 - min(levels, 3), 4)  # further levels are made from the last stage
    return dict(
        backbone=read_resnet(published, config, timm_config, stages),
        neck=dict(
            type='ChannelMapper',
            in_channels=[
                published.shape(f'neck.convs.{i}.conv.weight')[1] for i in range(len(stages))
            ],
            out_channels=dims,
            kernel_size=1,
            norm_cfg=dict(type='GN', num_groups=32) if is_deformable else None,
            act_cfg=None,
            bias=True,
            num_outs=levels,
        ),
        positional_encoding=dict(
            # Deformable DETR's positions are the centers of elements, DETR's are their ends.
            num_feats=dims // 2,
            normalize=True,
            offset=-0.5 if is_deformable else 0.0,
        ),
    )


def _check_weights(published: Published) -> None:
    """Raise a ``ConfigError`` if MMDetection's detector has no place for some of the weights."""
    if unused := published.ours.unused_keys():
        raise ConfigError(f'it has {unused[0]}, which MMDetection does not; give another model')


def _coder(
    published: Published, config: ForeignConfig, coder: str, dims: int, levels: int
) -> Section:
    """The config of the encoder or the decoder.

    Args:
        published: the weights.
        config: the config of the detector.
        coder: ``'encoder'`` or ``'decoder'``.
        dims: channels of the queries.
        levels: number of maps that the encoder reads.
    """
    heads = config.get(f'{coder}_attention_heads', PositiveInt)
    if dims % heads:
        raise config.unsupported(
            f'{coder}_attention_heads', why=f'which must divide {dims} channels'
        )
    width = published.shape(f'{coder}.layers.0.ffn.layers.0.0.weight')[0]
    layers = published.count(f'{coder}.layers.')
    config.check_agreement(**{f'{coder}_layers': layers, f'{coder}_ffn_dim': width})
    return dict(
        num_layers=layers,
        layer_cfg=dict(
            _attentions(published, config, coder, dict(embed_dims=dims, num_heads=heads), levels),
            ffn_cfg=dict(
                embed_dims=dims,
                feedforward_channels=width,
                ffn_drop=config.get('dropout', Fraction),
                act_cfg=dict(type='ReLU', inplace=True),
            ),
        ),
    )


def _attentions(
    published: Published, config: ForeignConfig, coder: str, shared: Section, levels: int
) -> Section:
    """The attention of a layer of the encoder, or the two of a layer of the decoder.

    ``shared`` has the arguments that all of them take; for the others see :func:`_coder`.
    """
    kind, is_decoder = published.model_type, coder == 'decoder'
    drop, attn_drop = (config.get(name, Fraction) for name in ('dropout', 'attention_dropout'))
    if kind == 'conditional_detr' and is_decoder:
        plain = dict(shared, attn_drop=attn_drop, proj_drop=drop)
        return dict(
            self_attn_cfg=dict(plain, cross_attn=False), cross_attn_cfg=dict(plain, cross_attn=True)
        )
    plain = dict(shared, attn_drop=attn_drop, dropout_layer=dict(type='Dropout', drop_prob=drop))
    attentions: Section = dict(self_attn_cfg=plain)
    if is_decoder:
        attentions['cross_attn_cfg'] = plain
    if kind == DEFORMABLE:
        name = 'cross_attn' if is_decoder else 'self_attn'
        rows = published.shape(f'{coder}.layers.0.{name}.attention_weights.weight')[0]
        points = rows // (shared['num_heads'] * levels)
        config.check_agreement(**{f'{coder}_n_points': points})
        attentions[f'{name}_cfg'] = dict(shared, num_levels=levels, num_points=points, dropout=drop)
    return attentions


def _settings(published: Published, model: Section, classes: Sequence[str]) -> Section:
    """The complete config, with a test pipeline that resizes like transformers."""
    # The size is a dict, or in older files the shortest edge as a number.
    size = get_typed(published.processor, 'size', Mapping, {})
    pixels = published.pixels(800)  # side if no size is stated
    shortest = get_typed(published.processor, 'size', PositiveInt, 800)
    keeps_ratio = not {'height', 'width'} <= {*size}
    if keeps_ratio:
        longest = get_typed(published.processor, 'max_size', PositiveInt, 1333)
        sides = (('longest_edge', longest), ('shortest_edge', shortest))
        pixels['size'] = tuple(get_typed(size, name, PositiveInt, side) for name, side in sides)
    settings = detector_settings(model, classes, pad_divisor=1 if keeps_ratio else None, **pixels)
    resize = settings['test_dataloader']['dataset']['pipeline'][1]  # after loading the image
    resize['backend'] = 'pillow'  # with antialiasing, as in transformers
    return settings
