"""Build a config's classifier and optimizer wrapper for a plan."""

import copy
import inspect

import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.encoder import Encoder

from .tracing import ENDS


def build_classifier(cfg: Config, recompute: bool = False, num_layers: int | None = None) -> nn.Module:
    """Build the classifier of a config without its weights, its preprocessor and the mixing of images.

    Args:
        cfg: the config.
        recompute: whether activations are recomputed in the backward (``with_cp``).
        num_layers: number of blocks to keep, the first and last ones; None keeps all.

    Raises:
        ConfigError: if the model is not a classifier on a :class:`~vit_plugin.models.VisionTransformer`.
    """
    model = copy.deepcopy(cfg.model.to_dict())
    backbone = model.get('backbone') or {}
    with MODELS.switch_scope_and_registry(cfg.get('default_scope') or 'mmpretrain') as registry:
        kind = registry.get(str(backbone.get('type'))) or object
        if 'head' not in model or not issubclass(kind, VisionTransformer):
            raise ConfigError(f'model: {model.get("type")} is not a classifier on a vit_plugin.VisionTransformer, and '
                              'only those can be planned; plan its backbone with a recipe of configs/vit and the same '
                              'arch and img_size.')
        backbone.update(with_cp=recompute, init_cfg=None)
        if 'pretrained' in (backbone.get('patch_embed') or {}):
            backbone['patch_embed']['pretrained'] = False
        built = registry.build(dict(model, data_preprocessor=None, train_cfg=None))
    if num_layers is not None:
        blocks = list(built.backbone.blocks)
        built.backbone.blocks = Encoder(blocks[:ENDS] + blocks[ENDS - num_layers:], (num_layers - 1, ), recompute)
    return built


def compute_dtype(cfg: Config) -> str:
    """The type in which products are computed: that of mixed precision or of the gathered parameters, or float32."""
    amp = str(cfg.optim_wrapper.get('type')).endswith('AmpOptimWrapper')
    return 'bfloat16' if amp or (cfg.get('sharding') or {}).get('param_dtype') else 'float32'


def planned_optim_wrapper(cfg: Config, device: str) -> dict:
    """The optimizer wrapper of a config, such that it does on a CPU's fake tensors what it does on the device."""
    wrapper = copy.deepcopy(cfg.optim_wrapper.to_dict())
    amp = str(wrapper.get('type', 'OptimWrapper')).endswith('AmpOptimWrapper')
    wrapper['type'] = 'vit_plugin.AmpOptimWrapper' if amp else 'vit_plugin.OptimWrapper'
    if amp:
        wrapper['dtype'] = 'bfloat16'  # as many bytes as float16, which CPUs do not compute in
        wrapper.pop('loss_scale', None)
    optimizer = wrapper['optimizer']
    kind = getattr(torch.optim, str(optimizer['type']), None)
    chosen = any(optimizer.get(name) for name in ('fused', 'differentiable'))
    if device == 'cuda' and kind and not chosen and 'foreach' in inspect.signature(kind).parameters:
        optimizer.setdefault('foreach', True)  # torch's own choice on CUDA
    return wrapper


def norms_in_float32(model: nn.Module) -> None:
    """Let norms compute in float32, as autocast does on CUDA and not on a CPU."""
    for module in model.modules():
        if isinstance(module, (nn.LayerNorm, nn.GroupNorm)):
            module.register_forward_pre_hook(lambda _, args: (args[0].float(), *args[1:]))
