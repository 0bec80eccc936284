"""Exponential moving averages (EMA) of the weights, for plain and sharded models."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import mmengine.hooks
import torch
from mmengine.logging import print_log
from mmengine.model import BaseAveragedModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from pydantic import Field
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from typing_extensions import TypedDict, Unpack

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import Count, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.loading.hooks import shard_like
from vit_plugin.registry import HOOKS

from .shard import reshard, without_ddp

Momentum = Annotated[float, Field(gt=0, lt=1)]


class AverageOptions(TypedDict, total=False):
    """Arguments of MMEngine's averaged models."""

    momentum: Momentum
    gamma: PositiveInt
    interval: PositiveInt
    device: str | None
    update_buffers: bool


@dataclass
class ModelTensors:
    """This rank's part of a model's tensors, as MMEngine's averages take a model."""

    model: nn.Module

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        return ((name, local_part(parameter)) for name, parameter in self.model.named_parameters())

    def state_dict(self) -> dict[str, Tensor]:
        return {name: local_part(value) for name, value in self.model.state_dict().items()}

    def buffers(self) -> Iterator[Tensor]:
        return iter(())  # the average has no buffers of its own, see EMAHook


def local_part(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor, in the same memory, without gradient."""
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@HOOKS.register_module()
class EMAHook(mmengine.hooks.EMAHook):
    """MMEngine's ``EMAHook`` for sharded models too, and without a copy of the model.

    From the start of the training, it keeps an average of each averaged tensor, sharded as that
    tensor is. Buffers that are not averaged are the model's own. Values and checkpoints are as
    MMEngine's: ``state_dict`` has the averages, and ``ema_state_dict`` the trained weights.

    Args:
        ema_type: the average, a class of :mod:`mmengine.model.averaged_model`.
        strict_load: whether a resumed checkpoint must have every average.
        begin_iter, begin_epoch: where averaging begins; one of the two must be 0. Before, the
            averages are the weights.
        **kwargs: ``momentum``, ``interval``, ``device``, ``update_buffers``, and ``gamma`` for
            ``'MomentumAnnealingEMA'``; see :class:`mmengine.model.ExponentialMovingAverage`.
    """

    def __init__(
        self,
        ema_type: Literal[
            'ExponentialMovingAverage', 'MomentumAnnealingEMA', 'StochasticWeightAverage'
        ] = 'ExponentialMovingAverage',
        strict_load: bool = False,
        begin_iter: Count = 0,
        begin_epoch: Count = 0,
        **kwargs: Unpack[AverageOptions],
    ) -> None:
        with as_config_error('EMAHook'):
            super().__init__(ema_type, strict_load, begin_iter, begin_epoch, **kwargs)

    def before_run(self, runner: Runner) -> None:
        self.src_model = without_ddp(runner.model)
        # MMEngine's class does the arithmetic. It would copy the model, so it gets an empty one.
        self.ema_model: BaseAveragedModel = MODELS.build(
            self.ema_cfg, default_args=dict(model=nn.Module())
        )
        self._averages: dict[str, Tensor] = {}  # by the model's names

    def before_train(self, runner: Runner) -> None:
        with as_config_error('EMAHook'):
            super().before_train(runner)
        if not self._averages:  # no averages were resumed
            self._make_averages()

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if self._ema_started(runner):
            reshard(self.src_model)
            self.ema_model.update_parameters(ModelTensors(self.src_model))
        else:
            self._set_averages(self._averaged_tensors())

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Save the averages in the place of the weights, and the weights as ``ema_state_dict``."""
        # By the averaged tensor, since the state dict has tied weights under several names.
        averages = {
            id(tensor): self._averages[name] for name, tensor in self._averaged_tensors().items()
        }
        checkpoint['ema_state_dict'] = {
            'steps': self.ema_model.steps,
            **{
                f'module.{name}': averages.get(
                    id(value), value.detach() if isinstance(value, Tensor) else value
                )
                for name, value in self.src_model.state_dict(keep_vars=True).items()
            },
        }
        self._swap_ema_state_dict(checkpoint)

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Restore the averages of a resumed checkpoint, or start them from the loaded weights."""
        if not runner._resume:
            return
        if 'ema_state_dict' not in checkpoint:
            print_log(
                'There is no `ema_state_dict` in the checkpoint: the averages start from its '
                'weights.',
                'current',
                logging.WARNING,
            )
            return
        self._swap_ema_state_dict(checkpoint)  # puts the averages into `ema_state_dict`
        saved = checkpoint['ema_state_dict']
        self._make_averages()
        for name, average in self._averages.items():
            value = saved.get(f'module.{name}')
            if value is None and not self.strict_load:
                continue
            if value is None or value.shape != average.shape:
                raise ConfigError(
                    f'The checkpoint has no average of {name!r} with the shape '
                    f'{tuple(average.shape)}; resume with the same model.'
                )
            self._set_averages({name: shard_like(value, average)})
        self.ema_model.steps.copy_(saved['steps'])

    def _averaged_tensors(self) -> dict[str, Tensor]:
        """The tensors of the model that are averaged, by name."""
        reshard(self.src_model)  # a validation may leave parameters gathered
        tensors: dict[str, Tensor] = dict(self.src_model.named_parameters())
        if self.ema_model.update_buffers:
            saved = self.src_model.state_dict(keep_vars=True)
            tensors |= {
                name: buffer for name, buffer in self.src_model.named_buffers() if name in saved
            }
        return tensors

    def _make_averages(self) -> None:
        """Begin all averages as copies of the weights."""
        device = self.ema_cfg.get('device')
        self._averages = {
            name: tensor.detach().clone().to(device or tensor.device)
            for name, tensor in self._averaged_tensors().items()
        }
        self.ema_model.avg_parameters = {
            name: local_part(average) for name, average in self._averages.items()
        }

    @torch.no_grad()
    def _set_averages(self, values: dict[str, Tensor]) -> None:
        """Copy values into the averages of the same names."""
        for name, value in values.items():
            local_part(self._averages[name]).copy_(local_part(value))

    @torch.no_grad()
    def _swap_ema_parameters(self) -> None:
        """Swap the averages with the weights.

        Without training there are no averages: the weights of a checkpoint already are averages.
        """
        if not self._averages:
            return
        for name, tensor in self._averaged_tensors().items():
            average, weight = local_part(self._averages[name]), local_part(tensor)
            former_average = average.clone()
            average.copy_(weight)
            weight.copy_(former_average)
