"""Match the weights of a file to a stem, by the stem's own names."""

from collections.abc import Mapping

from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.report import Report, shortened_list
from vit_plugin.weights.rules import check_real

# Prefixes of a stem's names in a file of the stem, of a backbone and of a complete model.
STEM_PREFIXES = ('', 'patch_embed.', 'backbone.patch_embed.')


def match_own_weights(
    targets: Mapping[str, Tensor], weights: Weights
) -> tuple[dict[str, Tensor], Report]:
    """Match weights to the tensors of a stem, with the prefix that finds most of them.

    Args:
        targets: the state dict of the stem.
        weights: the weights of the file.

    Returns:
        The tensors by the names of the stem, and the report of loading.

    Raises:
        ConfigError: if a tensor is missing, has a different shape or is quantized.
    """
    prefix = max(
        STEM_PREFIXES, key=lambda prefix: sum(f'{prefix}{ours}' in weights for ours in targets)
    )
    keys = {ours: f'{prefix}{ours}' for ours in targets}
    wrong = [
        ours
        for ours, key in keys.items()
        if key not in weights or weights[key].shape != targets[ours].shape
    ]
    if wrong:
        raise ConfigError(
            f'The checkpoint is not of this stem: {shortened_list(wrong)} are missing or of '
            'another shape; give the file of a model with the same stem.'
        )
    for ours, key in keys.items():
        if targets[ours].is_floating_point():
            check_real(key, weights[key])
    report = Report(
        'vit_plugin',
        matched={ours: (key,) for ours, key in keys.items()},
        ignored=dict.fromkeys(weights.keys() - keys.values(), 'not of the stem'),
    )
    return {ours: weights[key] for ours, key in keys.items()}, report
