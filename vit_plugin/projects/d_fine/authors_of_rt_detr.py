"""Read RT-DETR and RT-DETRv2, also trained by DEIM, from files of their authors without settings.

Sizes are inferred from the tensors. Everything else is the same in all published models, except for
the sampling of RT-DETRv2: the name of the file decides it.
"""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import detector_settings

from .authors_arrays import (
    ENCODER_HEADS,
    POINT_SCALES,
    USUAL_QUERIES,
    USUAL_SIZE,
    is_rarer_model,
    read_hgnet,
    read_points,
)
from .published_fine_head import detected_class_names
from .published_rt_detr import RESNET_LAYERS

# No other decoder of these authors has this tensor.
RT_DETR_MARK = 'decoder.decoder.layers.0.cross_attn.value_proj.weight'
DECODER_HEADS = 8  # attention heads of the decoder, if a file has no POINT_SCALES


def rt_detr_authors(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a detector, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if the tensors do not match a model built here.
    """
    if RT_DETR_MARK not in published.weights:
        return None
    backbone, channels = _backbone(published)
    neck = _csp_encoder(published, channels)
    head, classes = _head(published, [neck['out_channels']] * len(channels))
    model = dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)
    model['test_cfg'] = dict(max_per_img=USUAL_QUERIES)
    pixels = published.pixels(USUAL_SIZE, normalized=False)
    return detector_settings(model, classes, **pixels), classes


def _backbone(published: Published) -> tuple[Section, list[int]]:
    """The CNN and the channels of its maps."""
    if 'backbone.stem.stem1.conv.weight' in published.ours:
        return read_hgnet(published)
    depths = tuple(published.count(f'backbone.layer{i}.') for i in range(1, 5))
    is_bottleneck = 'backbone.layer1.0.conv3.weight' in published.ours
    if (depths, is_bottleneck) not in RESNET_LAYERS:
        raise ConfigError(
            'its backbone is neither HGNetV2 nor a ResNet-D of '
            f'{", ".join(map(str, sorted(RESNET_LAYERS.values())))} layers; give such a file'
        )
    num_maps = published.count('neck.projections.')
    indices = range(len(depths) - num_maps, len(depths))
    backbone = dict(
        type='vit_plugin.ResNetD',
        depth=RESNET_LAYERS[depths, is_bottleneck],
        out_indices=list(indices),
        # Frozen norms have no counter in these files.
        frozen_norms='backbone.stem.1.num_batches_tracked' not in published.ours,
    )
    return backbone, [(256 if is_bottleneck else 64) * 2**i for i in indices]


def _csp_encoder(published: Published, channels: Sequence[int]) -> Section:
    """The neck: RT-DETR's hybrid encoder."""
    dims = published.shape('neck.laterals.0.conv.weight')[0]
    width = published.shape('neck.top_down.0.conv1.conv.weight')[0]
    return dict(
        type='vit_plugin.HybridEncoder',
        in_channels=list(channels),
        out_channels=dims,
        kind='csp',
        expansion=width / dims,
        num_layers=published.count('neck.attentions.0.'),
        num_heads=ENCODER_HEADS,
        feedforward_channels=published.shape('neck.attentions.0.0.mlp.0.weight')[0],
    )


def _head(published: Published, channels: Sequence[int]) -> tuple[Section, list[str]]:
    """The head, and the names of its classes."""
    rows, dims = published.shape('bbox_head.proposal_cls.weight')
    if published.shape('bbox_head.fc_cls.0.weight')[0] != rows:
        raise ConfigError(
            'its elements propose boxes without classes (query_select_method=agnostic), which is '
            'not built here; give another file'
        )
    # DEIM's MLP of positions has three layers, as those of boxes have, and SiLU instead of ReLU.
    by_deim = published.count('bbox_head.position.layers.') > 2
    # An x and a y for each sampling point of each head.
    num_offsets = published.shape('bbox_head.layers.0.cross_attn.sampling_offsets.weight')[0]
    if POINT_SCALES in published.weights:
        points = read_points(published)
        title = 'RT-DETRv2 with discrete sampling'
        discrete = not by_deim and is_rarer_model(
            published, word='dsp', usual='rtdetr', title=title
        )
    else:  # RT-DETR
        points = [num_offsets // (2 * DECODER_HEADS * len(channels))] * len(channels)
        discrete = False
    head = dict(
        type='vit_plugin.RTDETRHead',
        num_classes=rows,
        num_queries=USUAL_QUERIES,
        in_channels=list(channels),
        embed_dims=dims,
        variant='rt_detr_deim' if by_deim else 'rt_detr',
        decoder=dict(
            num_layers=published.count('bbox_head.layers.'),
            num_heads=num_offsets // (2 * sum(points)),
            num_points=points,
            feedforward_channels=published.shape('bbox_head.layers.0.mlp.0.weight')[0],
            discrete=discrete,
        ),
        noise=dict(number=100 if 'bbox_head.noised_classes.weight' in published.ours else 0),
    )
    if by_deim:
        head['loss_cls'] = dict(type='vit_plugin.MatchabilityAwareLoss')
    return head, detected_class_names(published, rows)
