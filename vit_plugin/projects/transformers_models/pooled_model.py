"""Models of transformers that return a pooled vector, and their linear classifiers.

The classifier of a model is replaced by the identity, so that the model returns its input.
"""

import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .pooled_kinds import POOLED_KINDS

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def build_pooled_model(config: 'PreTrainedConfig') -> 'PreTrainedModel':
    """Build transformers' module with random weights and an identity as its classifier."""
    from transformers import AutoModel

    if not POOLED_KINDS[config.model_type].classifies:
        return AutoModel.from_config(config)
    model = _build_classifier(config)
    for name in _linear_layers(model):
        model.set_submodule(name, nn.Identity())
    return model


def pooled_vectors(outputs: Any) -> Tensor:
    """The vectors (B, C) in the outputs of a :func:`build_pooled_model`."""
    vectors = outputs.logits if 'logits' in outputs else outputs.pooler_output
    return vectors.flatten(1)  # may be (B, C, 1, 1)


def last_map(outputs: Any, images: Tensor, config: 'PreTrainedConfig') -> Tensor | None:
    """The last map (B, C, h, w) in outputs with hidden states; None if there are none.

    Args:
        outputs: outputs of a :func:`build_pooled_model`.
        images: the inputs of the model (B, 3, H, W).
        config: config of the model, for the patch size of encoders of one width.
    """
    states = outputs.get('reshaped_hidden_states') or outputs.get('hidden_states')
    if not states:
        return None
    return output_to_map(states[-1], images, config)


def output_to_map(features: Tensor, images: Tensor, config: 'PreTrainedConfig') -> Tensor | None:
    """A model's output as a map (B, C, h, w); None if it is neither a map nor tokens.

    Tokens are (B, N, C). The last ones are the patches.

    Args:
        features: output of a model.
        images, config: see :func:`last_map`.
    """
    side = getattr(config, 'patch_size', None)
    if features.ndim == 3 and side:
        sides = (side, side) if isinstance(side, int) else side
        grid = [pixels // patch for pixels, patch in zip(images.shape[2:], sides, strict=True)]
        if math.prod(grid) <= features.shape[1]:
            return features[:, -math.prod(grid) :].transpose(1, 2).unflatten(2, grid)
    return features if features.ndim == 4 else None


def find_classifiers(config: 'PreTrainedConfig') -> list[str]:
    """The names of the linear classifiers, which all take the same vector.

    A SwiftFormer has two, and averages their scores.
    """
    if not POOLED_KINDS[config.model_type].classifies:
        return []
    with torch.device('meta'):
        return _linear_layers(_build_classifier(config))


def build_with_classifier(
    model: 'PreTrainedModel', weight: Tensor, bias: Tensor
) -> 'PreTrainedModel':
    """Build transformers' classifier on a model, with this linear layer.

    If there are several classifiers, each gets the layer.

    Args:
        model: from :func:`build_pooled_model`.
        weight, bias: the linear layer (num_classes, C), (num_classes,).

    Raises:
        ConfigError: if transformers has no class with a classifier for this model type, or if its
            classifier lacks a bias that is not 0.
    """
    config = deepcopy(model.config)
    names = find_classifiers(config)
    if not names:
        raise ConfigError(f'transformers has no classifier on a {config.model_type}')
    config.num_labels = len(weight)
    built = _build_classifier(config)
    keys = built.state_dict().keys()
    state = model.state_dict()
    for name in names:
        state[f'{name}.weight'] = weight
        if f'{name}.bias' in keys:
            state[f'{name}.bias'] = bias
        elif bias.any():
            raise ConfigError(f'the classifier of a {config.model_type} has no bias')
    built.load_state_dict(state)
    return built


def _build_classifier(config: 'PreTrainedConfig') -> 'PreTrainedModel':
    from transformers import MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING

    classes = MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING[type(config)]
    # LeViT has a second class, with a teacher.
    return (classes[0] if isinstance(classes, tuple) else classes)._from_config(config)


def _linear_layers(model: 'PreTrainedModel') -> list[str]:
    """The names of the linear layers outside the encoder, which are the classifiers."""
    encoder = f'{model.base_model_prefix}.'
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not name.startswith(encoder)
    ]
