"""Read a checkpoint for a run: only its weights, or everything that resuming needs."""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from mmengine.runner import Runner
from torch import Tensor, nn

from vit_plugin.errors import rejecting
from vit_plugin.models.classes import keep_classifier
from vit_plugin.models.loading import check_floating_point, check_start
from vit_plugin.models.loading.hooks import shard_like
from vit_plugin.weights.for_mmengine import read_complete
from vit_plugin.weights.lora import merge_adapters
from vit_plugin.weights.reading.tensors import find_tensors
from vit_plugin.weights.report import shortened_list

from ..sharding import is_sharded, without_ddp
from .read_state import read_state
from .same_run import check_same_run
from .state import key_by_numbers


def read_for(runner: Runner, path: str, map_location: Any = None) -> dict[str, Any]:
    """Read a checkpoint (folder or file) for a runner, whose model may be sharded.

    Raises:
        ConfigError: if it cannot be read or does not fit the model, or if it is to be resumed from
            and this is not the same run, see :func:`.same_run.check_same_run`.
    """
    model = without_ddp(runner.model)
    if os.path.isdir(path):
        checkpoint = read_state(
            path,
            model,
            None if runner.resuming else ('meta', 'state_dict'),
            runner.saver.group,
            verify=path != runner.checked_checkpoint,
        )
        names = checkpoint['meta']['run']['parameters']
    else:
        checkpoint, names = read_complete(path, map_location), None
    # A run without `lora` starts from a checkpoint's weights with the adapters merged into them.
    if runner.lora:
        runner.lora.check_scale(checkpoint.get('meta') or {})
    elif not runner.resuming:
        checkpoint.update(
            {
                name: merge_adapters(checkpoint[name], checkpoint.get('meta'))
                for name in ('state_dict', 'ema_state_dict')
                if name in checkpoint
            }
        )
    for weights in _loadable_weights(checkpoint):
        if runner.resuming:
            check_floating_point(model, weights)
        else:
            check_start(model, weights)
    if not runner.resuming:
        _keep_own_classifier(runner, model, checkpoint)
        return checkpoint
    # A folder keys the optimizer's state by names of parameters, and a file by their numbers.
    if names and 'optimizer' in checkpoint:
        checkpoint['optimizer'] = key_by_numbers(checkpoint['optimizer'], names)
    check_same_run(runner, checkpoint, path)
    # Hooks of `load_state_dict` select this rank's part of the weights.
    if names is None and is_sharded(model):
        shard_optimizer_state(checkpoint['optimizer'], runner.optim_wrapper.optimizer)
    return checkpoint


def _keep_own_classifier(runner: Runner, model: nn.Module, checkpoint: Mapping[str, Any]) -> None:
    """Keep the model's own classifier if the checkpoint's is for other classes.

    ``checkpoint`` is changed in place.
    """
    loop = runner._train_loop
    if loop is None or isinstance(loop, dict):  # nothing is trained
        return
    saved_meta = (checkpoint.get('meta') or {}).get('dataset_meta') or {}
    data_meta = getattr(loop.dataloader.dataset, 'metainfo', {})
    saved_classes, data_classes = (
        tuple(meta.get('classes') or ()) for meta in (saved_meta, data_meta)
    )
    if saved_classes and data_classes and saved_classes != data_classes:
        kept = keep_classifier(model, checkpoint.get('state_dict') or {})
        keep_classifier(model, checkpoint.get('ema_state_dict') or {})
        if kept:
            runner.logger.info(
                f'The checkpoint has other classes ({shortened_list(saved_classes)}) than the data '
                f'({shortened_list(data_classes)}): {shortened_list(kept)} start untrained.'
            )


def shard_optimizer_state(saved: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    """Replace the complete tensors of an optimizer's saved state by this rank's part, in place."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group['params']]
    for number, state in saved['state'].items():
        state.update(
            {
                name: shard_like(value, parameters[number])
                for name, value in state.items()
                if isinstance(value, Tensor)
            }
        )


def _loadable_weights(checkpoint: Mapping[str, Any]) -> Iterator[Mapping[str, Tensor]]:
    """The weights, and the EMA weights that MMEngine's EMAHook may load in their place."""
    yield find_tensors(checkpoint)[0]
    yield {
        name.removeprefix('module.'): value
        for name, value in checkpoint.get('ema_state_dict', {}).items()
    }


def rejecting_unresumable(path: str) -> AbstractContextManager[None]:
    """Within this context, an error of MMEngine's ``resume`` becomes a ``ConfigError``."""
    return rejecting(
        f'{path!r} cannot be resumed from',
        'it is not the state of a run of this config; to start from its weights alone give '
        '--cfg-options load_from=FILE in place of --resume',
        (LookupError, TypeError, AttributeError, ValueError, RuntimeError),
    )
