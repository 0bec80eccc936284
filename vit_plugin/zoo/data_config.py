"""Preprocessing that pretrained weights expect, in the terms of timm's ``resolve_data_config``.

``mean`` and ``std`` are for pixels in [0, 1]; ``crop_pct`` is the share of the resized image that
the center crop keeps; ``crop_mode`` is ``'center'`` (resize the shorter edge and crop),
``'squash'`` (stretch to a square) or ``'border'`` (resize the longer edge and pad).
"""

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import timm
from mmengine.logging import print_log
from timm.data import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD, resolve_data_config

from anyfolder.bounded import read_json
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.weights.hub import quiet_retries, timm_name
from vit_plugin.weights.hub_files import (
    HUB_CONFIG,
    HUB_FILES,
    OPEN_CLIP_CONFIG,
    find_model_folder,
    weights_in,
)
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.saved_settings import training_settings

from .transformers_processor import PILLOW_INTERPOLATIONS, check_crop_pct, read_processor

# google-research/vision_transformer `input_pipeline.py`: resize the entire image, (x - 127.5) /
# 127.5.
AUTHORS_DATA_CONFIG = dict(
    interpolation='bilinear', mean=(0.5,) * 3, std=(0.5,) * 3, crop_pct=1.0, crop_mode='squash'
)
# The files that may state the preprocessing, in the order in which they are tried -> the entry with
# it; None: the entire file.
PREPROCESSING_FILES = {
    'preprocessor_config.json': None,
    'processor_config.json': 'image_processor',
    HUB_CONFIG: 'pretrained_cfg',
    OPEN_CLIP_CONFIG: 'preprocess_cfg',
}
# OpenCLIP's `resize_mode` -> timm's `crop_mode`.
CROP_MODES = dict(shortest='center', squash='squash', longest='border')


def data_config_of(arch: Any, source: Any = None) -> Section:
    """Preprocessing: ``interpolation``, ``mean``, ``std``, ``crop_pct``, ``crop_mode``.

    ``mean`` and ``std`` are for pixels scaled to [0, 1].

    Looked up in this order: the name of the weights (``timm://``, ``hf://``, or a local folder in
    the hub's format), then ``arch`` (the same, or a stem of timm). The first name of these forms
    decides. If it does not state the preprocessing, or if there is none, the authors' is returned
    (arXiv:2010.11929), with a warning for a model in the hub's format. ``mean`` and ``std`` are
    those of the training if the weights are a checkpoint that states them, see
    :func:`~vit_plugin.weights.saved_settings.training_settings`.

    Args:
        arch: see :func:`~vit_plugin.arch.parse_arch`.
        source: where the weights come from, or the open checkpoint.

    Raises:
        ConfigError: if timm has no weights of this name, or if a file cannot be read.
    """
    trained_with = training_settings(source)
    data_config = _config_from_name(_name_of(source), arch) or AUTHORS_DATA_CONFIG
    return {key: trained_with.get(key, value) for key, value in data_config.items()}


def known_mean_std(arch: Any, source: Any) -> Section:
    """``mean`` and ``std`` as in :func:`data_config_of` (for pixels scaled to [0, 1]), or {}.

    They are unknown if neither a name nor an open checkpoint states them. Files of the authors
    (``.npz``) have ``AUTHORS_DATA_CONFIG``. No weights are opened; only an open checkpoint and the
    small files of a hub's model are read.
    """
    name = _name_of(source)
    fallback = AUTHORS_DATA_CONFIG if str(name).endswith('.npz') else {}
    trained_with = training_settings(source) if isinstance(source, Checkpoint) else {}
    known = {**(_config_from_name(name, arch) or fallback), **trained_with}
    return {key: known[key] for key in ('mean', 'std') if key in known}


def _name_of(source: Any) -> Any:
    """Where weights come from, given that or the open checkpoint."""
    return source.source if isinstance(source, Checkpoint) else source


def _config_from_name(source: Any, arch: Any) -> Section | None:
    """The preprocessing by the name of the weights, or by that in ``arch``; or None."""
    for name in (str(value) for value in (source, arch) if value):
        if (model := timm_name(name)) is not None:
            return _from_timm(model)
        if name.startswith('hf://'):
            from huggingface_hub import hf_hub_download

            return _from_hub_files(name, partial(hf_hub_download, name.removeprefix('hf://')))
        path = Path(os.path.expanduser(name))
        folder = path.parent if path.name in HUB_FILES else path
        if weights_in(folder):
            return _from_hub_files(name, find_model_folder(folder).joinpath)
        stem, plus, _ = name.partition('+')
        if plus and timm.is_model(stem):
            return _from_timm(stem)
    return None


def _from_timm(name: str) -> Section | None:
    """The preprocessing that timm states for weights of this name, or None without a config."""
    try:
        pretrained_cfg = timm.get_pretrained_cfg(name)
    except RuntimeError as error:  # an unknown tag after the dot
        raise ConfigError(
            f'timm://{name}: {first_line(error)}; vit-plugin zoo --pretrained lists the names.'
        ) from error
    if pretrained_cfg is None:
        return None
    return _resolved(pretrained_cfg.to_dict())


def _resolved(pretrained_cfg: Mapping[str, Any]) -> Section:
    """The preprocessing in a ``pretrained_cfg``, with timm's defaults.

    Raises:
        ValueError: for an interpolation that timm lacks, or an impossible ``crop_pct``.
    """
    resolved = resolve_data_config(pretrained_cfg=dict(pretrained_cfg))
    values = {key: resolved[key] for key in AUTHORS_DATA_CONFIG}
    if values['interpolation'] not in PILLOW_INTERPOLATIONS.values():
        raise ValueError(f'interpolation={values["interpolation"]!r} is unknown')
    check_crop_pct(values['crop_pct'])
    return {**values, 'mean': tuple(values['mean']), 'std': tuple(values['std'])}


def open_clip_in_timm_terms(preprocess_cfg: Mapping[str, Any]) -> Section:
    """OpenCLIP's ``preprocess_cfg`` as a ``pretrained_cfg`` of timm, with OpenCLIP's defaults.

    Raises:
        KeyError: for an unknown ``resize_mode``.
    """
    settings: Section = dict(
        mean=OPENAI_CLIP_MEAN, std=OPENAI_CLIP_STD, interpolation='bicubic', crop_pct=1.0
    )
    settings |= {key: preprocess_cfg[key] for key in settings if preprocess_cfg.get(key)}
    return dict(settings, crop_mode=CROP_MODES[preprocess_cfg.get('resize_mode') or 'shortest'])


@quiet_retries()  # the hub logs every retry; show one
def _from_hub_files(name: str, path_of: Callable[[str], str | Path]) -> Section | None:
    """The preprocessing that a model's files state, in the form of transformers or else of timm."""
    for file, entry in PREPROCESSING_FILES.items():
        try:
            content = read_json(path_of(file))
            content = dict(content[entry] if entry else content)
            if file == HUB_CONFIG:
                return _resolved(content)
            if file == OPEN_CLIP_CONFIG:
                return _resolved(open_clip_in_timm_terms(content))
        # The error comes from the hub, from its client library, or from the file.
        except Exception as error:  # noqa: BLE001
            reason = type(error).__name__
            if reason == 'LocalEntryNotFoundError':  # no network: the other files would fail too
                break
            continue
        return _from_processor(name, file, content)
    print_log(
        f'{name}: none of {", ".join(PREPROCESSING_FILES)} states how its images are preprocessed '
        f'({reason}); using {AUTHORS_DATA_CONFIG}.',
        'current',
        logging.WARNING,
    )
    return None


def _from_processor(name: str, file: str, processor: Mapping[str, Any]) -> Section:
    """The preprocessing of an image processor of transformers, in timm's terms.

    For an entry that is missing or not of the expected form, the authors' is assumed (logged).

    Args:
        name: the name of the model.
        file: the file that states the processor.
        processor: its entries.
    """
    stated = read_processor(processor)
    config = {**AUTHORS_DATA_CONFIG, **stated}
    if assumed := [key for key in config if key not in stated]:
        print_log(
            f'{name}: {file} does not state {", ".join(assumed)}; assuming '
            f'{", ".join(f"{key}={config[key]}" for key in assumed)}.',
            'current',
            logging.WARNING,
        )
    return config
