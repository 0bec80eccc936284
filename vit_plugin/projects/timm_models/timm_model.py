"""Weights for a model of timm, from a checkpoint with timm's names or ours."""

import sys
from collections.abc import Mapping

from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.patch_resize import adapt_channels
from vit_plugin.weights.report import shortened_list


def fit_timm(model: nn.Module, name: str, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights for a model of timm, by its names, from a checkpoint with timm's names or ours.

    timm's own filter of that model adapts what does not fit as it is.

    Raises:
        ConfigError: if a tensor of the model is missing or has another shape.
    """
    theirs = {key.removeprefix('backbone.').removeprefix('model.'): given[key] for key in given}
    targets = model.state_dict()
    adapt = getattr(sys.modules[type(model).__module__], 'checkpoint_filter_fn', None)
    if adapt and _unfit(theirs, targets):
        theirs = adapt(theirs, model)
    fitted = {
        key: _with_channels(theirs[key], target) for key, target in targets.items() if key in theirs
    }
    if wrong := _unfit(fitted, targets):
        raise ConfigError(
            f'The checkpoint does not fit TimmBackbone {name!r}: {shortened_list(wrong)} are '
            'missing or of another shape; give the weights of this model, under the names of timm.'
        )
    return fitted


def _unfit(weights: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> list[str]:
    """The names of a model's tensors that weights lack, or have in another shape."""
    return [
        key
        for key, target in targets.items()
        if key not in weights or weights[key].shape != target.shape
    ]


def _with_channels(value: Tensor, target: Tensor) -> Tensor:
    """A convolution for another number of channels of the image."""
    same = value.shape[:1] + value.shape[2:] == target.shape[:1] + target.shape[2:]
    if value.ndim == 4 and same and value.shape != target.shape:
        return adapt_channels(value, target.shape[1])
    return value
