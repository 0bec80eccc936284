"""Class activation maps: which patches raise the score of a class."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.loading import find_backbone

from .attention_maps import eval_mode


def is_classifier(model: nn.Module) -> bool:
    """True if a model is a classifier of MMPretrain with its head."""
    # The head of a self-supervised model only computes a loss.
    head = getattr(model, 'head', None)
    return hasattr(head, 'predict') and hasattr(model, 'extract_feat')


def class_activation(
    model: nn.Module, images: Tensor, labels: list[int] | None = None
) -> tuple[Tensor, list[int]]:
    """Grad-CAM (arXiv:1610.02391, Equations 1 and 2) of the patches before the last block.

    After the last block, a classifier may read only the class token. So the patches are taken
    where they still matter, before it.

    Args:
        model: a classifier of MMPretrain with a :class:`~vit_plugin.models.VisionTransformer`.
        images: normalized images (B, C, H, W).
        labels: the class to look for in each image. Default: the most probable.

    Returns:
        Maps (B, H, W) between 0 and 1 of the size of the images, and the classes.

    Raises:
        ConfigError: if the model is not a classifier, or if a class does not exist.
    """
    if not is_classifier(model):
        raise ConfigError(
            f'cam needs a classifier with its head, but this is a {type(model).__name__}; give '
            '--config with the config of a classifier.'
        )
    _, backbone = find_backbone(model)
    grid = backbone.patch_embed.grid(tuple(images.shape[-2:]))
    module_before_last_block = [backbone.norm_pre, *backbone.blocks][-2]
    tokens = images  # replaced by the hook with the tokens before the last block

    # The gradient is needed only from here on, even if the first blocks are frozen.
    def start_graph(module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        nonlocal tokens
        tokens = output.detach().requires_grad_()
        return tokens

    with (
        eval_mode(model),
        torch.enable_grad(),
        module_before_last_block.register_forward_hook(start_graph),
    ):
        logits = model(images, mode='tensor')
    labels = logits.argmax(dim=1).tolist() if labels is None else labels
    for label in labels:
        if not 0 <= label < logits.shape[1]:
            raise ConfigError(
                f'There is no class {label}: this model has {logits.shape[1]} classes, counted '
                'from 0.'
            )
    (gradients,) = torch.autograd.grad(logits[range(len(labels)), labels].sum(), tokens)
    patches = tokens.detach()[:, -math.prod(grid) :]
    importance = gradients[:, -math.prod(grid) :].mean(dim=1, keepdim=True)  # (B, 1, C)
    maps = (importance * patches).sum(dim=-1).relu().unflatten(1, (1, *grid))  # (B, 1, h, w)
    maps = F.interpolate(maps, images.shape[-2:], mode='bilinear')[:, 0].cpu()
    low, high = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
    return (maps - low) / (high - low).clamp(min=1e-12), labels
