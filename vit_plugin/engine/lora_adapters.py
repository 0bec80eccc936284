"""Fine-tuning by low-rank adapters (LoRA, arXiv:2106.09685), through the library peft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mmengine.model import BaseAveragedModel
from mmengine.runner import Runner
from mmengine.runner.checkpoint import load_state_dict
from pydantic import Field
from torch import nn

from vit_plugin.arguments import checked
from vit_plugin.arguments.fields import Positive, PositiveInt, Rate
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import check_start
from vit_plugin.models.protocol import HasCopies
from vit_plugin.weights.lora import has_adapters
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading.tensors import find_tensors


@checked
@dataclass(frozen=True)
class Lora:
    """Adapters on the linear layers of the blocks. In a config this is ``lora=dict(...)``.

    The weights of the Vision Transformer itself are frozen. Its adapters are trained, and
    everything outside it: the neck, the heads, and the other parts of a ViT-Adapter.

    Attributes:
        r: rank of the adapters.
        alpha: their outputs are scaled by alpha / r.
        dropout: dropout of their inputs.
        targets: names of the layers, such as ``('qkv', 'proj')``. None, the default, takes all
            linear layers of the blocks.
    """

    r: PositiveInt = 8
    alpha: Positive = 16.0
    dropout: Rate = 0.0
    targets: Annotated[Sequence[str], Field(min_length=1)] | None = None

    def inject(self, model: nn.Module) -> None:
        """Add adapters to a model's Vision Transformers in place. At first the output is unchanged.

        A model that keeps copies of its weights makes them again, with the adapters, see
        :class:`~vit_plugin.models.protocol.HasCopies`.

        Raises:
            ConfigError: if there is no Vision Transformer with trainable parameters, if it lacks a
                target, or if the model averages its own weights and cannot make the copies again.
            MissingExtraError: if peft is not installed.
        """
        with needed_by('lora'):
            from peft import LoraConfig, inject_adapter_in_model
        averaged = any(isinstance(module, BaseAveragedModel) for module in model.modules())
        if averaged and not isinstance(model, HasCopies):
            raise ConfigError(
                f'lora: {type(model).__name__} pre-trains with averages of its weights, and '
                'adapters are for fine-tuning; leave lora out.'
            )
        backbones = [
            module
            for module in model.modules()
            if isinstance(module, VisionTransformer)
            and any(parameter.requires_grad for parameter in module.parameters())
        ]
        if not backbones:
            raise ConfigError(
                f'lora: {type(model).__name__} has no trainable vit_plugin.VisionTransformer; use '
                'one as the backbone, and do not freeze all its blocks by frozen_stages, or leave '
                'lora out.'
            )
        for backbone in backbones:
            inject_adapter_in_model(
                LoraConfig(
                    r=self.r,
                    lora_alpha=self.alpha,
                    lora_dropout=self.dropout,
                    target_modules=self._layers(backbone),
                ),
                backbone,
            )
        if isinstance(model, HasCopies):
            model.copy_again()

    def check_scale(self, meta: Mapping[str, Any]) -> None:
        """Compare ``r`` and ``alpha`` with those in the ``meta`` of a checkpoint, if it has any.

        Raises:
            ConfigError: if a setting would change the meaning of the saved adapters.
        """
        saved = meta.get('lora') or {}
        for name in ('r', 'alpha'):
            if name in saved and saved[name] != getattr(self, name):
                raise ConfigError(
                    f'lora: {name}={getattr(self, name)} differs from the checkpoint, whose '
                    f'adapters were trained with {saved[name]}; set {name}={saved[name]}.'
                )

    def _layers(self, backbone: VisionTransformer) -> list[str]:
        """The full names of the layers to adapt."""
        layers = [
            f'blocks.{name}'
            for name, module in backbone.blocks.named_modules()
            if isinstance(module, nn.Linear)
        ]
        layer_names = sorted({name.rpartition('.')[2] for name in layers})
        unknown = set(self.targets or ()) - set(layer_names)
        if unknown:
            raise ConfigError(
                f'lora: targets={sorted(unknown)} are not linear layers of the blocks, which are '
                f'{", ".join(layer_names)}.'
            )
        targets = self.targets or layer_names
        return [name for name in layers if name.rpartition('.')[2] in targets]


def initialize_with_adapters(runner: Runner, model: nn.Module, lora: Lora) -> bool:
    """Initialize a run's model and load its initial weights, then add the adapters.

    This precedes DDP and the optimizer, since both take the existing parameters. A checkpoint with
    adapters is left to the runner, which loads it afterward.

    Returns:
        True if the run is to be resumed, and the weights of ``begin_from`` are loaded in case there
        is nothing to resume from.
    """
    source, has_begun_from = runner._load_from, False
    if runner._resume and source:
        source = None  # the resumed checkpoint replaces all weights
    elif runner._resume:
        source = runner.cfg.get('begin_from')  # in case there is no checkpoint to resume from
    checkpoint = open_checkpoint(source) if source else None
    if not (checkpoint and has_adapters(find_tensors(checkpoint.content)[0])):
        model.init_weights()
        if checkpoint:
            check_start(model, checkpoint.weights)
            load_state_dict(model, dict(checkpoint.weights), strict=False, logger=runner.logger)
            runner.logger.info(f'The adapters begin with the weights of {source}.')
            # The runner must not load the same weights a second time.
            if runner._resume:
                has_begun_from = True
            else:
                runner._load_from = None
    lora.inject(model)
    parameters = list(model.parameters())
    total = sum(parameter.numel() for parameter in parameters)
    trainable = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    runner.logger.info(f'LoRA: {trainable:,} of {total:,} parameters are trained.')
    return has_begun_from
