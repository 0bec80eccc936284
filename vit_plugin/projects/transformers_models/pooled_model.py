"""Models of transformers without their classifiers, which return the classifiers' input."""

import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .pooled_kinds import POOLED_KINDS

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def pooled_model(config: 'PreTrainedConfig') -> 'PreTrainedModel':
    """transformers' module with random weights and an identity as its classifier."""
    from transformers import AutoModel

    if not POOLED_KINDS[config.model_type].classifies:
        return AutoModel.from_config(config)
    model = _classifier(config)
    for name in _linear_layers(model):
        model.set_submodule(name, nn.Identity())
    return model


def vectors(outputs: Any) -> Tensor:
    """The vectors (B, C) in the outputs of a :func:`pooled_model`."""
    vectors_or_maps = outputs.logits if 'logits' in outputs else outputs.pooler_output
    return vectors_or_maps.flatten(1)


def last_map(outputs: Any, images: Tensor, config: 'PreTrainedConfig') -> Tensor | None:
    """The last map (B, C, h, w) in outputs with hidden states; None if these are not a map.

    Args:
        outputs: outputs of a :func:`pooled_model`.
        images: the inputs of the model (B, 3, H, W).
        config: config of the model, for the patch size of encoders of one width.
    """
    states = outputs.get('reshaped_hidden_states') or outputs.get('hidden_states')
    if not states:
        return None
    return as_map(states[-1], images, config)


def as_map(features: Tensor, images: Tensor, config: 'PreTrainedConfig') -> Tensor | None:
    """A model's output as a map (B, C, h, w), or None.

    The output may be a map already, or tokens (B, N, C) whose last ones are the patches.

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
        return _linear_layers(_classifier(config))


def classifier_model(model: 'PreTrainedModel', weight: Tensor, bias: Tensor) -> 'PreTrainedModel':
    """A :func:`pooled_model` with this linear layer as its classifier, or as each of several.

    Raises:
        ConfigError: if transformers has no class of this kind with a classifier, or none with a
            bias.
    """
    config = deepcopy(model.config)
    names = find_classifiers(config)
    if not names:
        raise ConfigError(f'transformers has no classifier on a {config.model_type}')
    config.num_labels = len(weight)
    built = _classifier(config)
    names_of_built = {*built.state_dict()}
    state = model.state_dict()
    for name in names:
        state[f'{name}.weight'] = weight
        if f'{name}.bias' in names_of_built:
            state[f'{name}.bias'] = bias
        elif bias.any():
            raise ConfigError(f'the classifier of a {config.model_type} has no bias')
    built.load_state_dict(state)
    return built


def _classifier(config: 'PreTrainedConfig') -> 'PreTrainedModel':
    from transformers import MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING

    kinds = MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING[type(config)]
    # LeViT has a second class, with a teacher.
    return (kinds[0] if isinstance(kinds, tuple) else kinds)._from_config(config)


def _linear_layers(model: 'PreTrainedModel') -> list[str]:
    """The names of the linear layers outside the encoder."""
    encoder = f'{model.base_model_prefix}.'
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not name.startswith(encoder)
    ]
