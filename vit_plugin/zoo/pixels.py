"""How images become the pixels that a model expects, in the words of timm's ``resolve_data_config``."""

import json
import logging
from pathlib import Path
from typing import Any

import timm
from mmengine.logging import print_log
from timm.data import resolve_data_config

from vit_plugin.errors import ConfigError
from vit_plugin.weights.training import training_settings

# google-research/vision_transformer `input_pipeline.py`: (x - 127.5) / 127.5 of the entire image, resized.
AUTHORS = dict(interpolation='bilinear', mean=(0.5, ) * 3, std=(0.5, ) * 3, crop_pct=1.0, crop_mode='squash')
INTERPOLATIONS = {0: 'nearest', 2: 'bilinear', 3: 'bicubic'}  # Pillow's numbers


def data_config_of(arch: Any, source: Any = None) -> dict[str, Any]:
    """What weights expect of the pixels: ``interpolation``, ``mean``, ``std`` (of 0 to 1), ``crop_pct``, ``crop_mode``.

    The name of the weights tells it (``timm://``, ``hf://``), else the name in ``arch`` (``timm://``), else the answer
    is the authors' (arXiv:2010.11929). So it is, with a warning, for a model of Hugging Face's hub that does not tell.
    ``mean`` and ``std`` are those of the training if the weights are a checkpoint that says them, see
    :func:`~vit_plugin.weights.training.training_settings`.

    Args:
        arch: see :func:`~vit_plugin.arch.parse_arch`.
        source: where the weights come from.

    Raises:
        ConfigError: if timm has no weights of this name, or if a file cannot be read.
    """
    found = training_settings(source)
    return {key: found.get(key, value) for key, value in _of_names(source, arch).items()}


def _of_names(source: Any, arch: Any) -> dict[str, Any]:
    for name in map(str, (source, arch)):
        for prefix in ('timm://', 'hf://timm/'):
            if name.startswith(prefix):
                return _of_timm(name.removeprefix(prefix))
        if name.startswith('hf://'):
            return _of_hugging_face(name.removeprefix('hf://'))
    return dict(AUTHORS)


def _of_timm(name: str) -> dict[str, Any]:
    try:
        known = timm.get_pretrained_cfg(name)
    except RuntimeError as error:  # of an unknown tag after the dot
        raise ConfigError(f'timm://{name}: {str(error).splitlines()[0].rstrip(".")}; vit-plugin zoo --weights lists '
                          'the names.') from error
    if known is None:
        return dict(AUTHORS)
    found = resolve_data_config(pretrained_cfg=known.to_dict())
    return {key: found[key] for key in AUTHORS}


def _of_hugging_face(name: str) -> dict[str, Any]:
    """What the model's image processor in transformers does, as far as timm has words for it."""
    from huggingface_hub import hf_hub_download
    try:
        file = json.loads(Path(hf_hub_download(name, 'preprocessor_config.json')).read_text())
        size, crop = file.get('size', 224), file.get('crop_size') if file.get('do_center_crop') else None
        size, crop = (min(side for key, side in value.items() if 'longest' not in key)
                      if isinstance(value, dict) else value for value in (size, crop))
        return dict(interpolation=INTERPOLATIONS[file.get('resample', 2)], mean=tuple(file['image_mean']),
                    std=tuple(file['image_std']), crop_pct=crop / size if crop else 1.0,
                    crop_mode='center' if crop else 'squash')
    except Exception as error:  # noqa: BLE001  of the hub, of the library that it asks with, of the file
        print_log(f'hf://{name} does not say in its preprocessor_config.json what its weights expect of the pixels '
                  f'({type(error).__name__}): they get {AUTHORS}.', 'current', logging.WARNING)
        return dict(AUTHORS)
