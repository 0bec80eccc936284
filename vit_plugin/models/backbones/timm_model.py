"""A model of timm that returns feature maps: built, and its weights read."""

import sys
from collections.abc import Mapping
from typing import Any

import timm
from torch import Tensor, nn

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.weights.report import some

from ..layers.patch_resize import adapt_channels

# Options with which models of timm take images of any size. Most take neither.
ANY_SIZE: tuple[dict[str, Any], ...] = (
    dict(dynamic_img_size=True, dynamic_img_pad=True),
    dict(dynamic_img_size=True),
    {},
)
# timm's files whose models have no norm for feature maps.
WITHOUT_NORM = ('hiera', 'hieradet_sam2')


def build_timm(name: str, **options: Any) -> nn.Module:
    """Build timm's model with random weights, for images of any size if it takes them.

    Raises:
        ConfigError: if timm has no such model, or if it returns no feature maps or does not take an
            option.
    """
    error: Exception | None = None
    for more in ANY_SIZE:
        try:
            model = timm.create_model(name, **options, **more)
        except TypeError as problem:  # of an option that the model does not take
            error = problem
            continue
        except RuntimeError as problem:  # of an unknown name or tag
            raise ConfigError(
                f'TimmBackbone: model_name={name!r}: {first_line(problem)}; timm '
                f'{timm.__version__} lists its names with timm.list_models().'
            ) from problem
        if not hasattr(model, 'forward_intermediates'):
            raise ConfigError(
                f'TimmBackbone: {name} of timm {timm.__version__} does not return feature maps '
                '(forward_intermediates); take another model.'
            )
        return model
    raise ConfigError(
        f'TimmBackbone: {name} does not take one of {", ".join(options)} ({error}); leave it out.'
    )


def feature_infos(model: nn.Module) -> list[dict[str, Any]]:
    """What timm tells of each feature of a model: its module, channels and reduction."""
    infos: Any = model.feature_info
    return list(infos if isinstance(infos, list) else infos.get_dicts())


def feature_modules(model: nn.Module) -> list[nn.Module]:
    """The modules whose outputs are a model's features, without those inside another one."""
    modules = dict(model.named_modules())
    parts = [modules[info['module']] for info in feature_infos(model) if info['module'] in modules]
    inside = {id(module) for part in parts for module in part.modules() if module is not part}
    return [
        part
        for part in dict.fromkeys(parts)
        if id(part) not in inside and next(part.parameters(), None) is not None
    ]


def norms_maps(model: nn.Module) -> bool:
    """True if ``forward_intermediates`` of this model takes ``norm=True``."""
    return type(model).__module__.rpartition('.')[2] not in WITHOUT_NORM


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
            f'The checkpoint does not fit TimmBackbone {name!r}: {some(wrong)} are missing or of '
            'another shape; give the weights of this model, under the names of timm.'
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
