"""Convert names between formats, without a model."""

from collections.abc import Container, Mapping

from torch import Tensor

from vit_plugin.errors import ConfigError

from .formats import FORMATS
from .report import some
from .rules import Format, Step
from .unpacking import prepared

Plan = tuple[Format, str, dict[str, Step]]


def in_our_names(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Format]:
    """Give the weights of any format our names. Returns them and the format. No model is needed.

    Raises:
        ConfigError: if no format matches.
    """
    weights = prepared(weights)
    form, _, steps = choose_format(weights)
    return {ours: step.make(weights) for ours, step in steps.items()}, form


def _prefixes(form: Format, weights: Mapping[str, Tensor]) -> list[str]:
    """Prefixes of a format's names, also the attribute of a LightningModule, which comes first."""
    first = {key.partition('.')[0] for key in weights}
    attribute = [f'{word}.' for word in first if len(first) == 1 and '' in form.prefixes]
    return list(dict.fromkeys([*form.prefixes, *attribute]))


def choose_format(weights: Mapping[str, Tensor], targets: Container[str] | None = None) -> Plan:
    """Choose the format. Returns it, the prefix of its keys, and the steps that make our tensors.

    The chosen format finds the most targets. If several find equally many, the one that explains
    most weights wins. A format that finds no block, and explains less than half of the weights,
    shares some names by chance, such as the ``conv1`` of CLIP and of a ResNet.

    Raises:
        ConfigError: if no format finds any target, or only by chance.
    """
    candidates = []
    for form in FORMATS.values():
        for prefix in _prefixes(form, weights):
            if any(key.startswith(prefix) for key in weights):
                steps = {step.ours: step for step in form.plan(weights, prefix)}
                used = {key for step in steps.values() for key in step.theirs}
                found = [ours for ours in steps if targets is None or ours in targets]
                explained = len(used) + sum(
                    form.why_ignored(key, prefix) is not None for key in weights if key not in used
                )
                if found and (
                    2 * explained >= len(weights)
                    or any(ours.startswith('blocks.') for ours in found)
                ):
                    candidates.append((len(found), explained, form, prefix, steps))
    if not weights:
        raise ConfigError('The checkpoint has no weights; give another.')
    if not candidates:
        raise ConfigError(
            f'The checkpoint is of no known format: its keys ({some(weights)}) name no block of a '
            'known Vision Transformer, as those of a plain CNN; give weights of one of '
            f'{", ".join(FORMATS)}.'
        )
    return max(candidates, key=lambda candidate: candidate[:2])[2:]
