"""Read a transformers folder as a config of a model that wraps transformers' own module.

These are the model types that none of our encoders computes. Others are left to other readers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.processor_pixels import processor_pixels
from vit_plugin.weights.published import Published, get_typed
from vit_plugin.weights.published_settings import class_names
from vit_plugin.weights.published_wrapped import wrapped_run, wrapped_weights
from vit_plugin.weights.reading.lazy import Weights

from .backbone_config import backbone_config, backbone_entries
from .pooled_kinds import POOLED_KINDS, needs_wrapper
from .pooled_model import find_classifiers
from .transformers_backbone import TransformersBackbone

CLASSIFIER_ENDING = 'ForImageClassification'
# Endings of other class names whose weights include the encoder.
ENCODER_CLASS_ENDINGS = ('Model', 'Backbone', 'ForMaskedImageModeling', 'ForPreTraining')


def transformers_folder(published: Published) -> tuple[Section, list[str], Weights] | None:
    """The config of a classifier or encoder, its classes and its weights by our names.

    Returns None for any other folder.

    Raises:
        ConfigError: if transformers cannot build the model, or if its weights or preprocessing are
            not supported.
    """
    config, weights = published.config, published.weights
    if 'auto_map' in config or not needs_wrapper(published.model_type):
        return None
    kind = POOLED_KINDS[published.model_type]
    architectures = get_typed(config, 'architectures', list[str], [])
    if not {*architectures} <= {
        kind.title + end for end in (CLASSIFIER_ENDING, *ENCODER_CLASS_ENDINGS)
    }:
        return None
    entries = backbone_entries(config, pooled=True)
    with torch.device('meta'):  # without memory; `load` builds it again
        backbone = TransformersBackbone(entries, out_type='pooled')

    def load() -> Mapping[str, Tensor]:
        loaded = TransformersBackbone(entries, out_type='pooled')
        loaded.load(weights)
        return loaded.state_dict()

    classifiers = find_classifiers(backbone_config(config, pooled=True))
    has_head = {f'{name}.weight' for name in classifiers} <= {*weights}
    if not (kind.title + CLASSIFIER_ENDING in architectures or (has_head and not architectures)):
        classifiers = []
    classes = [
        name
        for classifier in classifiers[:1]  # the second one of a SwiftFormer has the same classes
        for name in class_names(published, published.shape(f'{classifier}.weight')[0])
    ]
    return wrapped_run(
        dict(type='vit_plugin.TransformersBackbone', config=entries, out_type='pooled'),
        backbone.embed_dims,
        classes,
        processor_pixels(published.processor, kind.processor, backbone.img_size),
        wrapped_weights([*backbone.state_dict()], load, weights, classifiers),
    )
