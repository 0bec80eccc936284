"""Load a checkpoint of any format into a model, completely or not at all.

All loading goes through ``load_state_dict``. Its hooks adapt the weights to the model. :func:`load_weights`, MMEngine's
``load_from`` and the backbone's ``init_cfg`` use it too. So this also works for sharded models and for models on the
meta device.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from mmengine.logging import print_log
from mmengine.model.weight_init import PretrainedInit
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Shard

from vit_plugin.errors import ConfigError
from vit_plugin.weights.conversion import choose_format, prepared
from vit_plugin.weights.files import find_weights
from vit_plugin.weights.formats import ADAPTER, FORMATS
from vit_plugin.weights.report import Report, some
from vit_plugin.weights.rules import GRID
from vit_plugin.weights.sources import open_weights, read_whole

from .adapt import saved_grid
from .fitting import Fitting
from .layers.attention_pool import AttentionPool


def load_weights(model: nn.Module, source: str | Path | Mapping[str, Tensor], skip: Iterable[str] = (),
                 source_grid: tuple[int, int] | None = None) -> Report:
    """Load a checkpoint into a backbone, or into a classifier, detector or segmentor that contains one.

    Args:
        model: the model. It may be on the meta device. It may also be sharded by ``fully_shard``. Then every process
            must call this function, and each keeps its part.
        source: a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``, or the tensors by name, in any
            format of :data:`~vit_plugin.weights.formats.FORMATS`.
        skip: patterns of our keys that keep their values, such as ``'head.{rest}'``. Also patterns of keys of the
            checkpoint that are left out, in our names or in its own.
        source_grid: the grid (h, w) of the checkpoint's position table. Only needed if it is not square.

    Returns:
        A report on every key. Print it.

    Raises:
        ConfigError: if the source cannot be read, or its format is unknown. Also if a key that the model needs is
            missing or has the wrong shape, or if a key of the checkpoint's encoder or stem has no place. The model is
            then unchanged.
    """
    weights = source if isinstance(source, Mapping) else open_weights(source)
    prefix, backbone = find_backbone(model)
    around = prefix.removesuffix('backbone.')
    state = model.state_dict(keep_vars=True)
    names = {name.removeprefix(prefix if name.startswith(prefix) else around): name for name in state}
    targets = {ours: state[name] for ours, name in names.items()}
    pool = next((module for module in model.modules() if isinstance(module, AttentionPool)), None)
    fitting = Fitting(backbone, targets, weights, skip, source_grid, pool=pool)
    # One block at a time, so that the whole file is never in memory. Meta tensors can only be replaced.
    parts = groupby(fitting.report.matched, lambda ours: (ours.split('.')[:2], targets[ours].is_meta))
    for (_, is_meta), part in parts:
        tensors = {names[ours]: placed(fitting.tensor(ours), targets[ours], copy=is_meta) for ours in part}
        model.load_state_dict(tensors, strict=False, assign=is_meta)
    empty = [ours for ours in fitting.report.initialised if targets[ours].is_meta]
    if empty:
        fitting.report.notes.append(f'{some(empty)} are still on the meta device: give them values')
    return fitting.report


def init_pretrained(backbone: nn.Module, init_others: Callable[[], None]) -> None:
    """Load the ``Pretrained`` entry of a backbone's ``init_cfg`` with :func:`load_weights`.

    In addition to MMEngine's ``checkpoint`` and ``prefix``, the entry may have ``skip`` and ``source_grid``. MMEngine
    itself would use its own reader.

    Args:
        backbone: the backbone.
        init_others: MMEngine's initialisation, for all other entries.

    Raises:
        ConfigError: see :func:`load_weights`. Also if the entry has any other key.
    """
    given, first = backbone.init_cfg, not backbone.is_init
    cfgs = given if isinstance(given, (list, tuple)) else [given] if given else []
    pretrained = [cfg for cfg in cfgs if cfg.get('type') in ('Pretrained', PretrainedInit)]
    backbone.init_cfg = [cfg for cfg in cfgs if cfg not in pretrained]
    try:
        init_others()
    finally:
        backbone.init_cfg = given
    for cfg in pretrained if first else []:
        unknown = cfg.keys() - {'type', 'checkpoint', 'prefix', 'map_location', 'skip', 'source_grid'}
        if unknown or 'checkpoint' not in cfg:
            raise ConfigError(f'init_cfg={cfg} must have checkpoint, and may have prefix, skip and source_grid.')
        weights = open_weights(cfg['checkpoint'])
        if cfg.get('prefix'):
            start = cfg['prefix'].rstrip('.') + '.'
            weights = {key.removeprefix(start): weights[key] for key in weights if key.startswith(start)}
        report = load_weights(backbone, weights, cfg.get('skip', ()),
                              cfg.get('source_grid') or find_backbone(backbone)[1].position.source_grid)
        print_log(f'Loaded {cfg["checkpoint"]}\n{report}', 'current')


def place(module: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """Hook of ``load_state_dict`` for sharded modules: keep this process's part of whole tensors."""
    for name, target in module.state_dict(keep_vars=True).items():
        if isinstance(target, DTensor) and f'{prefix}{name}' in state:
            state[f'{prefix}{name}'] = placed(state[f'{prefix}{name}'], target)


def placed(value: Tensor, target: Tensor, copy: bool = False) -> Tensor:
    """Shard a tensor like its target, if the target is sharded. Each process takes its part of the whole tensor.

    Args:
        value: the whole tensor.
        target: the tensor that will receive it.
        copy: whether the result replaces the target. It then needs the target's type and its own memory.
    """
    if isinstance(target, DTensor) and not isinstance(value, DTensor) and value.shape == target.shape:
        mesh, part = target.device_mesh, value.detach()
        # Only this part is read from the file and moved to the device.
        for ranks, mine, placement in zip(mesh.shape, mesh.get_coordinate(), target.placements, strict=True):
            if isinstance(placement, Shard):
                size = -(-part.shape[placement.dim] // ranks)  # the last parts may be smaller or empty
                start = min(size * mine, part.shape[placement.dim])
                part = part.narrow(placement.dim, start, min(size, part.shape[placement.dim] - start))
        part = part.to(mesh.device_type, target.dtype, copy=copy).contiguous()
        return DTensor.from_local(part, mesh, target.placements, run_check=False, shape=target.shape,
                                  stride=target.stride())
    return value.detach().to(target.dtype, copy=True, memory_format=torch.contiguous_format) if copy else value


def fit_backbone(backbone: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """Hook of ``load_state_dict``: convert a state, in place, to the names and shapes of a backbone.

    A state with our names is only adapted. torch then reports missing keys, and keys outside the encoder and stem.
    A state with other names is converted and must be complete. Entries of other modules, outside ``prefix``, stay
    unchanged.

    Raises:
        ConfigError: see :func:`load_weights`. Weights of an encoder or stem without a place raise it for any value of
            ``strict``, because torch does not pass ``strict`` to hooks.
    """
    mine = _inside(state, prefix)
    if not mine:
        return
    targets = backbone.state_dict(keep_vars=True)
    if all(key in targets and isinstance(value, Tensor) and value.layout is torch.strided and (
            _is_grid(value, backbone) if key == GRID else value.shape == targets[key].shape)
           for key, value in mine.items()):
        place(backbone, state, prefix)
        return
    weights = prepared(mine)
    plan = choose_format(weights, targets)
    own = plan[0] is FORMATS['vit_plugin']
    wanted = {key: value for key, value in targets.items() if key in plan[2]} if own else targets
    fitting = Fitting(backbone, wanted, weights, plan=plan, complete=not own)
    report = fitting.report
    if report.adapted or report.ignored or not own:
        print_log(f'{report}', 'current')
    left = {key for key in report.ignored if own and not fitting.may_be_left(key.removeprefix(fitting.prefix))}
    for key in mine.keys() - left:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours}': fitting.tensor(ours) for ours in report.matched})
    place(backbone, state, prefix)


def fit_adapter(adapter: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """Hook of ``load_state_dict``: find the backbone of a ViT-Adapter in the authors' checkpoints, in place.

    There it has no name of its own. What is not of the adapter itself gets the name ``backbone.``, and is then for the
    backbone's hook.
    """
    for key in [key for key in state if isinstance(key, str) and key.startswith(prefix)]:
        name = key.removeprefix(prefix)
        if name.partition('.')[0] not in ADAPTER:
            state[f'{prefix}backbone.{name}'] = state.pop(key)
    place(adapter, state, prefix)


def _inside(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries with this prefix, without those of modules that read their own state."""
    mine = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)} if all(
        isinstance(key, str) for key in state) else dict(state)
    return {key: value for key, value in mine.items() if key == GRID or not str(key).endswith('_extra_state')}


def _is_grid(value: Tensor, backbone: nn.Module) -> bool:
    return saved_grid(value) == backbone.position.grid


def fit_classifier(backbone: nn.Module, state: dict[str, Any], prefix: str) -> None:
    """Convert the state of a whole classifier of another format, in place, to MMPretrain's parts.

    The names become ``backbone.``, ``neck.`` and ``head.`` after the prefix of the classifier. A state with our names
    and entries of other modules stay unchanged.
    """
    mine = _inside(state, prefix)
    targets = backbone.state_dict(keep_vars=True)
    if not mine or any(f'backbone.{key}' in mine for key in targets):
        return
    weights = prepared(mine)
    try:
        plan = choose_format(weights, targets)
    except ConfigError:
        return  # nothing is for the backbone, such as weights of a head alone. torch can load those
    # The backbone does not know the shapes of the neck and head. Their weights are passed on unchanged.
    others = {ours: step.make(weights) for ours, step in plan[2].items() if ours.startswith(('neck.', 'head.'))}
    fitting = Fitting(backbone, targets | others, weights, plan=plan)
    if others:
        fitting.report.notes.append(f'{some(others)} are for the neck and head, and unused if the model has none')
    print_log(f'{fitting.report}', 'current')
    for key in mine:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours if ours in others else f"backbone.{ours}"}': fitting.tensor(ours)
                  for ours in fitting.report.matched})


def load_trained(model: nn.Module, checkpoint: str) -> dict[str, Any]:
    """Load a checkpoint of the same whole model, to predict with it.

    Returns:
        ``meta``, the checkpoint's facts about its training.

    Raises:
        ConfigError: if a tensor of the model is missing in the checkpoint or has another shape there.
    """
    content = read_whole(checkpoint)
    not_of_it = f'The checkpoint {checkpoint!r} is not of this model: '
    try:
        found = model.load_state_dict(find_weights(content), strict=False)
    except RuntimeError as error:  # of a shape
        raise ConfigError(not_of_it + str(error).splitlines()[1].strip()) from error
    if found.missing_keys:
        raise ConfigError(f'{not_of_it}it lacks {len(found.missing_keys)} of its {len(model.state_dict())} tensors, '
                          f'such as {found.missing_keys[0]!r}.')
    return content.get('meta', {})


def find_backbone(model: nn.Module) -> tuple[str, nn.Module]:
    """Find our backbone inside a model. Returns the prefix of its parameters and the backbone.

    Raises:
        ConfigError: if there is no such backbone, or more than one.
    """
    from .backbones import VisionTransformer  # which itself hangs these hooks up
    found = [(f'{name}.' if name else '', module) for name, module in model.named_modules()
             if isinstance(module, VisionTransformer)]
    if len(found) != 1:
        raise ConfigError('load_weights wants a model with one vit_plugin.VisionTransformer, and '
                          f'{type(model).__name__} has {len(found)}.')
    return found[0]
