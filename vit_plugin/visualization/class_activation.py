"""Which parts of an image speak for a class."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models.loading import find_backbone

from .attention_maps import observing


class _Logits(nn.Module):
    """A classifier of MMPretrain as a function from images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images, mode='tensor')


@contextmanager
def gradients_apart(model: nn.Module) -> Iterator[None]:
    """Give the parameters their gradients back at the end, which a run may be accumulating."""
    kept = {parameter: parameter.grad for parameter in model.parameters()}
    model.zero_grad(set_to_none=True)
    try:
        yield
    finally:
        for parameter, gradient in kept.items():
            parameter.grad = gradient


def class_activation(model: nn.Module, images: Tensor, labels: list[int] | None = None) -> tuple[Tensor, list[int]]:
    """Grad-CAM (arXiv:1610.02391) of the patches before the last block, through the package `grad-cam`.

    After the last block, a classifier may read only the class token. So the patches that matter are its input.

    Args:
        model: a classifier of MMPretrain with a :class:`~vit_plugin.models.VisionTransformer`.
        images: normalised images (B, C, H, W).
        labels: the class to look for in each image. Default: the likeliest.

    Returns:
        Maps (B, H, W) between 0 and 1 of the size of the images, and the classes.

    Raises:
        ConfigError: if the model is no classifier, or if a class does not exist.
        MissingExtraError: if `grad-cam` is not installed.
    """
    with needed_by('class activation'):
        from pytorch_grad_cam import GradCAM
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
    if not hasattr(model, 'head') or not hasattr(model, 'extract_feat'):
        raise ConfigError(f'cam needs a classifier with its head, and this is a {type(model).__name__}; give --config '
                          'with the config of a classifier.')
    _, backbone = find_backbone(model)
    classify, training = _Logits(model), model.training
    with observing(model):
        logits = classify(images)
    labels = logits.argmax(dim=1).tolist() if labels is None else labels
    for label in labels:
        if not 0 <= label < logits.shape[1]:
            raise ConfigError(f'There is no class {label}: this model has {logits.shape[1]} classes, counted from 0.')
    grid, prefix = backbone.patch_embed.grid(tuple(images.shape[-2:])), backbone.num_prefix_tokens
    before = [backbone.norm_pre, *backbone.blocks][-2]
    with gradients_apart(model), torch.enable_grad(), GradCAM(
            classify, [before], lambda tokens: tokens[:, prefix:].transpose(1, 2).unflatten(2, grid)) as cam:
        maps = cam(images.detach().clone().requires_grad_(), [ClassifierOutputTarget(label) for label in labels])
    model.train(training)  # GradCAM left it in eval mode
    return torch.from_numpy(maps), labels
