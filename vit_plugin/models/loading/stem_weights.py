"""Recognize a file that has only a CNN, for the stem of a hybrid whose blocks are new."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.report import Report


def find_stem_weights(
    backbone: nn.Module, targets: Mapping[str, Any], weights: Weights
) -> tuple[dict[str, Tensor], Report] | None:
    """Match a file that has only the CNN of the stem.

    Args:
        backbone: the model's backbone.
        targets: the tensors of the backbone or of the whole model, by this package's names without
            ``backbone.``.
        weights: the weights of the file.

    Returns:
        The weights of the stem by the same names, and a report; or None if the file has another
        model, or more than this CNN.

    Raises:
        ConfigError: if a tensor of the CNN is missing or has a different shape.
    """
    if not backbone.patch_embed.is_cnn_checkpoint(weights):
        return None
    fitted, report = backbone.patch_embed.match_weights(weights)
    report = report.with_prefix('patch_embed.')
    unloaded = sorted(targets.keys() - report.matched.keys() - report.initialized.keys())
    report.initialized |= dict.fromkeys(unloaded, 'the checkpoint has only the CNN of the stem')
    return {f'patch_embed.{name}': value for name, value in fitted.items()}, report
