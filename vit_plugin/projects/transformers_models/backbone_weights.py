"""Weights of a backbone of transformers, loaded and saved by transformers' own renaming."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.weights.hub_files import HUB_CONFIG, HUB_WEIGHTS
from vit_plugin.weights.report import Report, shortened_list

MAP_NORMS_PREFIX = 'hidden_states_norms.'  # norms of maps, which only backbone classes have


def load_backbone_weights(model: Any, weights: Mapping[str, Tensor]) -> Report:
    """Load the weights of any transformers model with this backbone into it.

    Raises:
        ConfigError: if a tensor of the backbone is missing or has another shape. The model is then
            unchanged.
    """
    with _quiet():
        built, loading_info = type(model).from_pretrained(
            None,
            config=model.config,
            state_dict=_strip_prefixes(weights, model.base_model_prefix),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    state = model.state_dict()  # without a classifier
    unusable = [
        name for name in loading_info['missing_keys'] if not name.startswith(MAP_NORMS_PREFIX)
    ]
    unusable += [key for key, *_ in loading_info['mismatched_keys']]
    if unusable := [name for name in unusable if name in state]:
        raise ConfigError(
            f'The checkpoint does not fit TransformersBackbone {model.config.model_type!r}: '
            f'{shortened_list(unusable)} are missing or of another shape; give the weights of '
            'this model, under the names of transformers.'
        )
    values = built.state_dict()
    model.load_state_dict({name: values[name] for name in state})
    initialized = {
        name: 'the checkpoint lacks it' for name in loading_info['missing_keys'] if name in state
    }
    matched = {name: (name,) for name in state if name not in initialized}
    return Report(
        'transformers',
        matched={f'model.{name}': keys for name, keys in matched.items()},
        initialized={f'model.{name}': why for name, why in initialized.items()},
    )


def saved_files(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The entries of ``config.json`` and the tensors that transformers saves for a model."""
    with TemporaryDirectory() as folder, _quiet():
        model.save_pretrained(folder, max_shard_size='1TB')
        config = json.loads(Path(folder, HUB_CONFIG).read_text(encoding='utf-8'))
        return config, load_file(Path(folder, HUB_WEIGHTS))


@contextmanager
def _quiet() -> Iterator[None]:
    """Within this context, transformers shows no progress bars and no loading reports."""
    from transformers.utils import logging as hf_logging

    level, has_bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        if has_bars:
            hf_logging.enable_progress_bar()


def _strip_prefixes(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Strip our prefixes, ``backbone.model.`` or ``model.``, from transformers' names.

    Args:
        weights: the weights.
        prefix: transformers' name of the encoder within a classifier, which stays.
    """
    names = {key: key for key in weights}
    for start in ('backbone.model.', 'model.'):
        is_own_prefix = start == f'{prefix}.'
        inside = {key.removeprefix(start): key for key in weights if key.startswith(start)}
        # `model.` can also be a component of a transformers model, unless all names begin with it.
        if inside and not is_own_prefix and (start != 'model.' or len(inside) == len(names)):
            names = inside
            break
    return {name: weights[key] for name, key in names.items()}
