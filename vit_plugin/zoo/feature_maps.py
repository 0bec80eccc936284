"""Build timm models that return feature maps, and read their own descriptions.

These are the module, channels and stride of each map, the name of the classifier, and the pooling.
"""

from functools import cache
from typing import Any

import timm
import torch
from timm.layers import SelectAdaptivePool2d
from torch import nn

from vit_plugin.errors import ConfigError, first_line

# Options that let timm models take images of any size, tried in this order. Most models have
# neither of them.
ANY_SIZE: tuple[dict[str, Any], ...] = (
    dict(dynamic_img_size=True, dynamic_img_pad=True),
    dict(dynamic_img_size=True),
    {},
)
# timm's files whose models have no final norm for feature maps.
FILES_WITHOUT_NORM = ('hiera', 'hieradet_sam2')


def build_timm(
    name: str, subject: str = 'TimmBackbone: model_name', /, **options: Any
) -> nn.Module:
    """Build timm's model with random weights, for images of any size if it takes them.

    Args:
        name: timm's name of the model.
        subject: what has this name as its value, the beginning of messages.
        **options: arguments of timm's model.

    Raises:
        ConfigError: if timm has no such model, or if it returns no feature maps or does not take an
            option.
    """
    error: Exception | None = None
    for size_options in ANY_SIZE:
        try:
            model = timm.create_model(name, **options, **size_options)
        except TypeError as problem:  # the model does not take an option
            error = problem
            continue
        # An unknown name, tag or path, or a hub that cannot be read.
        except (OSError, RuntimeError, ValueError) as problem:
            # timm takes a name with a / for a path or a repository; its message would mislead.
            is_misleading = '/' in name and not isinstance(problem, OSError)
            why = 'not the name of a model' if is_misleading else first_line(problem)
            raise ConfigError(
                f'{subject}={name!r}: {why}; timm {timm.__version__} lists its names with '
                'timm.list_models().'
            ) from problem
        if not hasattr(model, 'forward_intermediates'):
            raise ConfigError(
                f'{subject}={name!r}: this model of timm {timm.__version__} does not return '
                'feature maps (forward_intermediates); take another model.'
            )
        return model
    if not options:
        raise ConfigError(
            f'{subject}={name!r}: timm cannot build this model ({error}); take another one.'
        ) from error
    raise ConfigError(
        f'{subject}={name!r} rejects one of {", ".join(options)} ({error}); leave it out.'
    ) from error


def feature_infos(model: nn.Module) -> list[dict[str, Any]]:
    """timm's description of each feature of a model: its module, channels and reduction."""
    infos: Any = model.feature_info
    return list(infos if isinstance(infos, list) else infos.get_dicts())


@cache  # an arch is parsed repeatedly
def map_indices(name: str, stride: int) -> tuple[int, ...]:
    """The indices of the feature maps of timm's model up to the last one of this stride.

    Returns:
        The indices, or an empty tuple if timm has no such model.

    Raises:
        ConfigError: if the model has no map of this stride.
    """
    if not timm.is_model(name):
        return ()
    with torch.device('meta'):
        strides = [info['reduction'] for info in feature_infos(build_timm(name, 'stem of arch'))]
    if stride not in strides:
        raise ConfigError(
            f'{name} of timm has no feature map of the stride {stride}; after the / of arch give '
            f'one of {", ".join(map(str, dict.fromkeys(strides)))}.'
        )
    last = max(i for i, stride_of_map in enumerate(strides) if stride_of_map == stride)
    return tuple(range(last + 1))


def find_classifier(model: nn.Module, name: str) -> str:
    """The name of a model's linear classifier, as a module of the model.

    Args:
        model: timm's model.
        name: its name, for messages.

    Raises:
        ConfigError: if there is none, or more than one.
    """
    cfg: Any = model.pretrained_cfg
    names = cfg.get('classifier') or ()
    names = [names] if isinstance(names, str) else [*names]
    if len(names) != 1 or not isinstance(model.get_submodule(names[0]), nn.Linear):
        raise ConfigError(
            f'TimmBackbone: {name} of timm {timm.__version__} has no single linear classifier; '
            'vit-plugin train --data FOLDER --weights trains one on the average of its last map.'
        )
    return names[0]


def map_pooling(model: nn.Module) -> str:
    """How a model pools its last map, as timm's name of the pooling, such as ``'avg'``."""
    pooling = getattr(model, 'global_pool', '')
    if isinstance(pooling, str) and pooling:
        return pooling
    pools = (module for module in model.modules() if isinstance(module, SelectAdaptivePool2d))
    return next((pool.pool_type for pool in pools), 'avg')


def feature_modules(model: nn.Module) -> list[nn.Module]:
    """The modules whose outputs are a model's features.

    Modules nested in others and modules without parameters are left out.
    """
    modules = dict(model.named_modules())
    parts = [modules[info['module']] for info in feature_infos(model) if info['module'] in modules]
    nested = {id(module) for part in parts for module in part.modules() if module is not part}
    return [
        part
        for part in dict.fromkeys(parts)
        if id(part) not in nested and next(part.parameters(), None) is not None
    ]


def supports_final_norm(model: nn.Module) -> bool:
    """True if ``forward_intermediates`` of this model takes ``norm=True``."""
    timm_file = type(model).__module__.rpartition('.')[2]
    return timm_file not in FILES_WITHOUT_NORM
