"""Settings of the training that saved a checkpoint, read without running code in it.

MMEngine saves a run's config as Python text. Its plain values are parsed, and everything that then
builds a module is validated, see :mod:`vit_plugin.untrusted`.
"""

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Numbers, Positive, Section, Size
from vit_plugin.errors import naming
from vit_plugin.project import declared_rows
from vit_plugin.untrusted.admission import validate_untrusted

from .opening import Checkpoint, open_checkpoint
from .reading.size_checks import check_weight_limit

# Arguments of a saved backbone that are not taken over.
DROPPED_ARGUMENTS = ('type', 'img_size', 'init_cfg')
# Types of backbones whose arguments fit a VisionTransformer -> further arguments that are not taken
# over, which only their pre-training has.
BACKBONES: dict[str, tuple[str, ...]] = {
    'vit_plugin.VisionTransformer': (),
    **{
        f'vit_plugin.{name}': arguments
        for name, arguments in declared_rows('pretraining_backbones').items()
    },
}


def training_settings(source: Any) -> Section:
    """The training's image settings, from the text of the config in a checkpoint's ``meta``.

    Numbers are parsed from it, and no code is run.

    Args:
        source: an open checkpoint, a path, or an address, whose file is downloaded. Models of hubs
            (``timm://``, ``hf://``) have no MMEngine config.

    Returns:
        ``img_size`` in pixels; ``mean`` and ``std`` of values from 0 to 1. Unknown settings are
        left out.

    Raises:
        ConfigError: if the file cannot be downloaded or read.
    """
    settings = _read_saved(source)
    image_settings: Section = {}
    size = value_at(settings, 'model.backbone.img_size')
    if size is not None and fits(Size, size):
        image_settings['img_size'] = size
    for preprocessor in ('model.data_preprocessor', 'data_preprocessor'):
        mean = value_at(settings, f'{preprocessor}.mean')
        std = value_at(settings, f'{preprocessor}.std')
        if fits(Numbers, mean) and fits(Sequence[Positive], std) and len(mean) == len(std):
            image_settings['mean'] = tuple(value / 255 for value in mean)
            image_settings['std'] = tuple(value / 255 for value in std)
            return image_settings
    return image_settings


def saved_backbone(source: Any) -> Section:
    """Arguments of a saved ``VisionTransformer`` except ``img_size``, or {} for other models.

    That a pre-training froze the patch projection is not part of the model, and is dropped.

    Raises:
        ConfigError: as :func:`training_settings`, or if they could run code, see
            :func:`~vit_plugin.untrusted.admission.validate_untrusted`.
    """
    settings = _read_saved(source)
    backbone = value_at(settings, 'model.backbone')
    backbone_type = value_at(backbone, 'type')
    if not isinstance(backbone_type, str) or backbone_type not in BACKBONES:
        return {}
    reduced = dict(settings, model=dict(backbone=backbone))
    admitted = validate_untrusted(reduced, str(source), 'start')['model']['backbone']
    if isinstance(stem := admitted.get('patch_embed'), dict):
        admitted['patch_embed'] = {key: stem[key] for key in stem if key != 'frozen'}
    left_out = (*DROPPED_ARGUMENTS, *BACKBONES[backbone_type])
    return {key: value for key, value in admitted.items() if key not in left_out}


def saved_neck(source: Any) -> Section:
    """The config of a saved ``vit_plugin.TokenPooling``, or {} for other models.

    Raises:
        ConfigError: see :func:`saved_backbone`.
    """
    settings = _read_saved(source)
    neck = value_at(settings, 'model.neck')
    if value_at(neck, 'type') != 'vit_plugin.TokenPooling':
        return {}
    reduced = dict(settings, model=dict(neck=neck))
    return dict(validate_untrusted(reduced, str(source), 'start')['model']['neck'])


def _read_saved(source: Any) -> Section:
    """The settings in a checkpoint, or {} if the source is a hub's model or cannot be a file."""
    if isinstance(source, Checkpoint):
        return read_settings(source)
    if (
        not isinstance(source, (str, Path))
        or str(source).startswith(('timm://', 'hf://'))
        or not ('://' in str(source) or os.path.exists(os.path.expanduser(source)))
    ):
        return {}
    return read_settings(open_checkpoint(source, payload=False))


def value_at(settings: Any, field: str) -> Any:
    """The value of a dotted name, or None."""
    for name in field.split('.'):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def read_settings(checkpoint: Checkpoint) -> Section:
    """The settings in the config that MMEngine saved with a checkpoint, see :func:`literals`."""
    with naming(checkpoint.source):
        return literals(checkpoint.meta.get('cfg'))


def literals(text: Any) -> Section:
    """The top-level settings in a config's text that are plain values. Nothing in it is run.

    Raises:
        LimitError: if the text is too long.
    """
    values = {}
    if isinstance(text, str):
        check_weight_limit('meta.cfg of the checkpoint', 'characters of a config', len(text))
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    values[node.targets[0].id] = ast.literal_eval(_DictCalls().visit(node.value))
                except (ValueError, TypeError):  # an expression, such as a function call
                    continue
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass  # no text, or not the text of a config
    return values


class _DictCalls(ast.NodeTransformer):
    """Replace ``dict(a=1)`` and ``dict({'.a': 1})`` by ``{...}``, which ``literal_eval`` takes."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        positional = node.args[0] if node.args else ast.Dict([], [])
        if (
            getattr(node.func, 'id', None) != 'dict'
            or len(node.args) > 1
            or not isinstance(positional, ast.Dict)
            or any(keyword.arg is None for keyword in node.keywords)  # **entries
        ):
            return node
        return ast.Dict(
            [*positional.keys, *(ast.Constant(keyword.arg) for keyword in node.keywords)],
            [*positional.values, *(keyword.value for keyword in node.keywords)],
        )
