"""Build a config's classifier and optimizer wrapper for a plan."""

import copy
import inspect

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from vit_plugin.arch import SIZE_KEYS, parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer


def check_classifier(cfg: Config) -> None:
    """Raise a ``ConfigError`` if the config's model is not a classifier on our backbone."""
    model = cfg.model
    if 'head' not in model or not str((model.get('backbone') or {}).get('type')).endswith('VisionTransformer'):
        raise ConfigError(f'model: {model.get("type")} is not a classifier on a vit_plugin.VisionTransformer, and only '
                          'those can be planned; plan its backbone with a recipe of configs/vit and the same arch and '
                          'img_size.')


def build_classifier(cfg: Config, recompute: bool, num_layers: int | None) -> nn.Module:
    """Build the classifier of a config without its pretrained weights, with this number of blocks.

    Raises:
        ConfigError: if the model is not a classifier on a :class:`~vit_plugin.models.VisionTransformer`.
    """
    check_classifier(cfg)
    init_default_scope(cfg.get('default_scope') or 'mmpretrain')
    model = copy.deepcopy(cfg.model.to_dict())
    backbone = model['backbone']
    backbone.update(with_cp=recompute, init_cfg=None)
    if 'pretrained' in (backbone.get('patch_embed') or {}):
        backbone['patch_embed']['pretrained'] = False
    if num_layers is not None:
        arch, stem = parse_arch(backbone.get('arch', 'B/16')), backbone.get('patch_embed') or {}
        own = stem.get('type', arch.patch_embed.get('type')) == arch.patch_embed.get('type')
        backbone['patch_embed'] = {**(arch.patch_embed if own else {}), **stem}
        backbone['arch'] = {**{key: getattr(arch, key) for key in SIZE_KEYS}, 'num_layers': num_layers}
    preprocessor = dict(model.get('data_preprocessor') or cfg.get('data_preprocessor') or {})
    preprocessor.setdefault('type', 'mmpretrain.ClsDataPreprocessor')
    if preprocessor.pop('augments', None):  # they work on the images alone, before anything of the model is held
        preprocessor['type'] = 'mmpretrain.ClsDataPreprocessor'
    built = MODELS.build(dict(model, data_preprocessor=preprocessor))
    if not isinstance(built.backbone, VisionTransformer):
        raise ConfigError(f'model.backbone: {type(built.backbone).__name__} is not a vit_plugin.VisionTransformer.')
    return built


def computes_in(cfg: Config) -> str:
    """The type in which products are computed: that of mixed precision or of the gathered parameters, or float32."""
    amp = str(cfg.optim_wrapper.get('type')).endswith('AmpOptimWrapper')
    return 'bfloat16' if amp or (cfg.get('sharding') or {}).get('param_dtype') else 'float32'


def planned_optim_wrapper(cfg: Config, device: str) -> dict:
    """The optimizer wrapper of a config, so that it does on a CPU's fake tensors what it does on the device."""
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
