"""The classifier and the optimizer wrapper of a config, changed so that a plan can trace them."""

import copy
import inspect

import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.importable import register_optimizer
from vit_plugin.models import VisionTransformer
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.layers.encoder import Encoder
from vit_plugin.models.layers.recompute import Recompute

from .tracing import END_BLOCKS


def build_classifier(
    cfg: Config, recompute: Recompute = False, num_layers: int | None = None
) -> nn.Module:
    """Build a config's classifier without weights, preprocessor and batch augmentation.

    Args:
        cfg: the config.
        recompute: see :class:`~.traced_step.Layout`.
        num_layers: number of blocks to keep: the first ``END_BLOCKS``, and the last of the others.
            None keeps all.

    Raises:
        ConfigError: if the model is not a classifier on a
            :class:`~vit_plugin.models.VisionTransformer` or a module of another library.
    """
    model = copy.deepcopy(cfg.model.to_dict())
    if model.get('teacher'):
        raise ConfigError(
            'model.teacher: a plan has no teacher; plan the student by a config without teacher '
            'and losses, and add the memory of the teacher and the time of its forward.'
        )
    backbone = model.get('backbone') or {}
    with MODELS.switch_scope_and_registry(cfg.get('default_scope') or 'mmpretrain') as registry:
        backbone_class = registry.get(str(backbone.get('type'))) or object
        if 'head' not in model or not issubclass(
            backbone_class, (VisionTransformer, WrappedBackbone)
        ):
            raise ConfigError(
                f'model: {model.get("type")} is not a classifier on a '
                'vit_plugin.VisionTransformer, TransformersBackbone or TimmBackbone, and only '
                'those are planned, since the losses of boxes and masks depend on values; plan its '
                'backbone with a recipe of configs/vit and the same arch and img_size.'
            )
        backbone.update(with_cp=recompute, init_cfg=None)
        if 'pretrained' in (backbone.get('patch_embed') or {}):
            backbone['patch_embed']['pretrained'] = False
        built = registry.build(dict(model, data_preprocessor=None, train_cfg=None))
    if num_layers is not None:
        blocks = list(built.backbone.blocks)
        built.backbone.blocks = Encoder(
            blocks[:END_BLOCKS] + blocks[END_BLOCKS - num_layers :],
            out_indices=(num_layers - 1,),
            with_cp=recompute,
        )
    return built


def num_blocks(model: nn.Module) -> int:
    """The number of blocks of a backbone; 0 for another library's module, traced as a whole."""
    return len(getattr(model.backbone, 'blocks', ()))


def find_recompute_modes(model: nn.Module) -> tuple[Recompute, ...]:
    """The modes of activation checkpointing that a classifier's backbone supports."""
    if not isinstance(model.backbone, WrappedBackbone):
        return False, 'selective', True
    try:
        model.backbone.recompute(True)
    except ConfigError:
        return (False,)
    return False, True


def compute_dtype(cfg: Config) -> str:
    """The dtype of matrix products: bfloat16 by mixed precision or sharding, else float32.

    Raises:
        ConfigError: if the config has no optimizer.
    """
    wrapper = cfg.get('optim_wrapper') or {}
    if not (wrapper.get('optimizer') or {}).get('type'):
        raise ConfigError(
            'optim_wrapper: the config has no optimizer, whose memory is planned, too; add one, '
            'for example by --cfg-options optim_wrapper.optimizer.type=AdamW.'
        )
    is_mixed = str(wrapper.get('type')).endswith('AmpOptimWrapper')
    if is_mixed or (cfg.get('sharding') or {}).get('param_dtype'):
        return 'bfloat16'
    return 'float32'


def planned_optim_wrapper(cfg: Config, device: str) -> dict:
    """The optimizer wrapper of a config, adapted to act on fake CPU tensors as on the device."""
    wrapper = copy.deepcopy(cfg.optim_wrapper.to_dict())
    register_optimizer(wrapper)
    if str(wrapper.get('type', 'OptimWrapper')).endswith('AmpOptimWrapper'):
        wrapper['type'] = 'vit_plugin.AmpOptimWrapper'
        wrapper['dtype'] = 'bfloat16'  # CPUs lack float16, which has the same size
        wrapper.pop('loss_scale', None)
    else:
        wrapper['type'] = 'vit_plugin.OptimWrapper'
    optimizer = wrapper['optimizer']
    optimizer_class = getattr(torch.optim, str(optimizer['type']), None)
    states_kernel = any(optimizer.get(name) for name in ('fused', 'differentiable'))
    if (
        device == 'cuda'
        and optimizer_class
        and not states_kernel
        and 'foreach' in inspect.signature(optimizer_class).parameters
    ):
        optimizer.setdefault('foreach', True)  # torch's own choice on CUDA
    return wrapper
