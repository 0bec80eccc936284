"""The content of a run's checkpoint: MMEngine's dict, independent of its storage."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from itertools import chain
from typing import Any

import mmengine
import torch
from mmengine.dist import is_main_process
from mmengine.runner import EpochBasedTrainLoop, Runner
from mmengine.utils import apply_to
from torch import Tensor, nn

import vit_plugin
from vit_plugin.weights.provenance import PROVENANCE_KEY
from vit_plugin.weights.reading.plain import split_tensors

from ..sharding import reshard, without_ddp

State = dict[str, Any]  # the state of a run or of one of its components


def capture_state(
    runner: Runner,
    meta: dict[str, Any] | None = None,
    save_optimizer: bool = True,
    save_param_scheduler: bool = True,
    by_epoch: bool = True,
) -> State:
    """The state of a run, as MMEngine's ``Runner.save_checkpoint`` makes it.

    Args:
        runner: the run. ``before_save_checkpoint`` of its hooks is called.
        meta: entries of the checkpoint's ``meta``, above all the position: ``epoch`` and ``iter``.
        save_optimizer, save_param_scheduler: whether to include their states.
        by_epoch: without a position in ``meta``, whether an epoch or an iteration has just ended.

    Returns:
        The dict, with the run's own tensors, not copies. ``meta['run']`` is the result of
        :func:`identity`.
    """
    reshard(runner.model)  # parameters may still be gathered after a validation
    ended = (
        dict(epoch=runner.epoch + 1, iter=runner.iter)
        if by_epoch
        else dict(epoch=runner.epoch, iter=runner.iter + 1)
    )
    meta = {**ended, **(meta or {})}
    meta.update(
        cfg=runner.config_text,
        seed=runner.seed,
        experiment_name=runner.experiment_name,
        time=time.strftime('%Y%m%d_%H%M%S', time.localtime()),
        mmengine_version=mmengine.__version__,
        run=identity(runner),
    )
    if hasattr(runner.train_dataloader.dataset, 'metainfo'):
        meta['dataset_meta'] = runner.train_dataloader.dataset.metainfo
    if is_main_process():  # the main process writes it
        meta[PROVENANCE_KEY] = runner.provenance.plain()
    if runner.lora:
        meta['lora'] = asdict(runner.lora)
    state = dict(
        meta=meta,
        state_dict=without_ddp(runner.model).state_dict(),
        message_hub=runner.message_hub.state_dict(),
    )
    if save_optimizer:
        state['optimizer'] = runner.optim_wrapper.state_dict()
    if save_param_scheduler and runner.param_schedulers is None:
        runner.logger.warning('There are no param_schedulers to save.')
    elif save_param_scheduler:
        state['param_schedulers'] = list(map(scheduler_state, runner.param_schedulers))
    runner.call_hook('before_save_checkpoint', checkpoint=state)
    return state


def scheduler_state(scheduler: Any) -> State:
    """A scheduler's state without functions (OneCycleLR has one), which safe readers reject."""
    return {name: value for name, value in scheduler.state_dict().items() if not callable(value)}


def on_cpu(state: State, copy: bool, keep: bool = True) -> State:
    """Gather the tensors of a state on the CPU. If some are sharded, every rank calls it.

    Args:
        state: see :func:`capture_state`.
        copy: whether to copy tensors that are already on the CPU, so that training may continue.
        keep: whether this rank needs the state. Otherwise it only takes part, and gets an empty
            one.
    """
    copies: dict[tuple, Tensor] = {}  # by memory, shape, strides and type
    memo: dict[int, Any] = {}  # for `deepcopy`: the id of a tensor -> its replacement

    def gather(tensor: Tensor) -> None:
        if hasattr(tensor, 'full_tensor'):  # a DTensor
            complete = tensor.full_tensor()
            memo[id(tensor)] = complete.to('cpu') if keep else None
        elif keep:
            # Tied weights stay one tensor. Empty tensors have no memory to tell them apart.
            memory = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
            if memory not in copies or not tensor.numel():
                copies[memory] = tensor.detach().to('cpu', copy=copy)
            memo[id(tensor)] = copies[memory]

    apply_to(state, lambda value: isinstance(value, Tensor), gather)
    return deepcopy(state, memo) if keep else {}


def split_state(state: State, main: bool) -> tuple[dict[str, Tensor], State]:
    """Split a state into tensors and plain data. The optimizer's state is keyed by parameter names.

    The main process (``main``) writes all its tensors. Other processes write only sharded ones, so
    not, for example, their own BatchNorm statistics. See
    :func:`~vit_plugin.weights.reading.plain.split_tensors`.
    """
    if 'optimizer' in state:
        state = {
            **state,
            'optimizer': key_by_names(state['optimizer'], state['meta']['run']['parameters']),
        }
    tensors, plain = split_tensors(state)
    return {
        name: tensor for name, tensor in tensors.items() if main or hasattr(tensor, 'full_tensor')
    }, plain


def identity(runner: Runner) -> dict[str, Any]:
    """What a checkpoint records of its run, for a run that resumes from it to be compared.

    It also has the versions that wrote the checkpoint, for the user.
    """
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    optimizer, model = runner.optim_wrapper.optimizer, without_ddp(runner.model)
    names = {parameter: name for name, parameter in model.named_parameters()}
    # A parameter that is not the model's has its position as its name.
    groups = [
        [names.get(parameter, f'{i}.{j}') for j, parameter in enumerate(group['params'])]
        for i, group in enumerate(optimizer.param_groups)
    ]
    return dict(
        optimizer=type(optimizer).__name__,
        states=len(optimizer.state),
        parameters=groups,
        batch=global_batch(runner),
        epoch_length=len(runner.train_dataloader) if by_epoch else None,
        data=runner.data_facts,
        settings=runner.settings,
        teacher=identify_teacher(model),
        world_size=runner.world_size,
        torch=str(torch.__version__),
        vit_plugin=vit_plugin.__version__,
    )


def identify_teacher(model: nn.Module) -> list[str] | None:
    """The name of a frozen teacher and the hash of its weights, which no checkpoint contains."""
    teacher: Any = getattr(model, 'teacher', None)
    return [teacher.name, teacher.fingerprint] if hasattr(teacher, 'fingerprint') else None


def key_by_names(optimizer: Mapping[str, Any], parameters: Sequence[Sequence[str]]) -> State:
    """An optimizer's state dict with the names of parameters in place of their numbers.

    Args:
        optimizer: the state dict.
        parameters: the names of the parameters of each group, as in ``meta['run']``.
    """
    names = list(chain(*parameters))
    return {**optimizer, 'state': {names[i]: value for i, value in optimizer['state'].items()}}


def key_by_numbers(optimizer: Mapping[str, Any], parameters: Sequence[Sequence[str]]) -> State:
    """The inverse of :func:`key_by_names`."""
    numbers = {name: i for i, name in enumerate(chain(*parameters))}
    return {
        **optimizer,
        'state': {numbers[name]: value for name, value in optimizer['state'].items()},
    }


def global_batch(runner: Runner) -> int | None:
    """Number of samples per iteration over all processes, or None if the loader does not say."""
    loader = runner.train_dataloader
    size = getattr(loader, 'batch_size', None) or getattr(
        getattr(loader, 'batch_sampler', None), 'batch_size', None
    )
    return size * runner.world_size if isinstance(size, int) else None
