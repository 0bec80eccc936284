"""Recognize a file that has only a CNN, for the stem of a hybrid whose blocks are new."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.report import Report


def find_stem_weights(
    backbone: nn.Module, targets: Mapping[str, Any], weights: Weights
) -> tuple[dict[str, Tensor], Report] | None:
    """The weights of the stem from a file with only its CNN, by our names, and a report.

    Args:
        backbone: the model's backbone.
        targets: the tensors of the backbone or of the whole model, by our names.
        weights: the weights of the file.

    Returns:
        None if the file is not of this CNN, or has more than it.

    Raises:
        ConfigError: if a tensor of the CNN is missing or has a different shape.
    """
    if not backbone.patch_embed.is_cnn_checkpoint(weights):
        return None
    fitted, report = backbone.patch_embed.match_weights(weights)
    report = report.with_prefix('patch_embed.')
    unloaded = sorted(targets.keys() - report.matched.keys() - report.initialized.keys())
    report.initialized |= dict.fromkeys(unloaded, 'the checkpoint is of the CNN of the stem alone')
    return {f'patch_embed.{name}': value for name, value in fitted.items()}, report
