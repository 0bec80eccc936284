"""Recognize the format of weights by trying all of them, and convert the weights to ours.

Prefixes of wrappers around a model (DDP, ``torch.compile``, Lightning) are stripped first.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from vit_plugin.errors import ConfigError

from .formats import FORMATS, OWN
from .reading.lazy import Lazy, Weights
from .reading.size_checks import check_weight_limit
from .reading.tensors import checked_weights
from .report import shortened_list
from .rules import Format, Step

REGISTERS = 'register_tokens'  # the end of transformers' name for registers
PARALLEL = re.compile(r'(^|\.)module\.')  # the prefix of DataParallel and DDP
# DINOv2 groups its blocks in chunks, but numbers them consecutively.
CHUNK_NUMBER = re.compile(r'(^|\.)blocks\.[0-9]+\.(?=[0-9]+\.)')
WRAPPERS = re.compile(r'_(orig_mod|checkpoint_wrapped_module|fsdp_wrapped_module)\.')


@dataclass(frozen=True, eq=False)
class Recognized(Mapping[str, Tensor]):
    """Weights of a known format, by our names. Each tensor is converted on access.

    Attributes:
        format: the format.
        prefix: prefix of the keys in this checkpoint.
        steps: the conversion step that makes each of our tensors, by our name.
        theirs: the weights by their own names, without wrapper prefixes.
    """

    format: Format
    prefix: str
    steps: Mapping[str, Step]
    theirs: Weights

    @property
    def is_own(self) -> bool:
        """True if the names are already ours."""
        return self.format is OWN

    def unused_keys(self) -> list[str]:
        """The keys, by their own names, that no step uses and the format does not ignore."""
        used = {key for step in self.steps.values() for key in step.theirs}
        return [
            key
            for key in self.theirs
            if key not in used and self.format.why_ignored(key, self.prefix) is None
        ]

    def __getitem__(self, ours: str) -> Tensor:
        return self.steps[ours].to_ours(self.theirs)

    def __contains__(self, ours: object) -> bool:
        return ours in self.steps

    def __iter__(self) -> Iterator[str]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)


def recognize(weights: Weights, targets: Container[str] | None = None) -> Recognized:
    """Recognize the format of weights. No model is needed.

    The chosen format finds the most targets. If several find equally many, the one that explains
    most weights wins. A format that finds no block, and explains less than half of the weights,
    shares some names by chance, such as the ``conv1`` of CLIP and of a ResNet.

    Args:
        weights: by the names of their format.
        targets: our names to look for. Default: all.

    Raises:
        ConfigError: if there are no weights, if a name is not a string, or if a value is not a
            dense tensor of plain numbers. Also if no format finds any target, or only by chance.
    """
    weights = split_scanned_blocks(
        with_vit_msn_prefix(
            without_empty_registers(
                without_chunks(without_wrapper_prefixes(checked_weights(weights)))
            )
        )
    )
    if targets is not None and (recognized := _by_our_names(weights, targets)):
        return recognized
    candidates = []
    for weight_format in FORMATS.values():
        for prefix in _prefixes(weight_format, weights):
            if not any(key.startswith(prefix) for key in weights):
                continue
            steps = {step.ours: step for step in weight_format.plan(weights, prefix)}
            matched = [ours for ours in steps if targets is None or ours in targets]
            if not matched:
                continue
            used = {key for step in steps.values() for key in step.theirs}
            explained = len(used) + sum(
                weight_format.why_ignored(key, prefix) is not None
                for key in weights
                if key not in used
            )
            has_block = any(ours.startswith('blocks.') for ours in matched)
            if has_block or 2 * explained >= len(weights):
                candidates.append((len(matched), explained, weight_format, prefix, steps))
    if not weights:
        raise ConfigError('The checkpoint has no weights; give another.')
    if not candidates:
        raise ConfigError(
            f'The format of the checkpoint is not known: its keys ({shortened_list(weights)}) name '
            'no block of a known Vision Transformer, as those of a plain CNN; give weights of one '
            f'of {", ".join(FORMATS)}.'
        )
    # FORMATS are in order of precedence, and `max` returns the first of equal candidates.
    *_, weight_format, prefix, steps = max(candidates, key=lambda candidate: candidate[:2])
    return Recognized(weight_format, prefix, steps, weights)


def _by_our_names(weights: Weights, targets: Container[str]) -> Recognized | None:
    """A shortcut: if all weights have names of targets, no other format can find more. Else None.

    Most checkpoints are like this, and trying the other formats takes as long as loading.
    """
    for prefix in _prefixes(OWN, weights):
        steps = {step.ours: step for step in OWN.plan(weights, prefix)}
        if steps and len(steps) == len(weights) and all(ours in targets for ours in steps):
            return Recognized(OWN, prefix, steps, weights)
    return None


def _prefixes(weight_format: Format, weights: Weights) -> list[str]:
    """Candidate prefixes of a format's names: its own, then the attribute of a LightningModule.

    If all keys begin with the same word, it may be such an attribute.
    """
    prefixes, first_words = [*weight_format.prefixes], {key.partition('.')[0] for key in weights}
    if len(first_words) == 1 and '' in prefixes:
        prefixes.append(f'{first_words.pop()}.')
    return list(dict.fromkeys(prefixes))


def without_wrapper_prefixes(weights: Weights) -> Weights:
    """Strip the prefixes of torch's wrappers from names."""
    names = {WRAPPERS.sub('', key): key for key in weights}
    while names and all(map(PARALLEL.search, names)):
        names = {PARALLEL.sub(r'\1', name, count=1): key for name, key in names.items()}
    return rename_weights(weights, names)


def without_chunks(weights: Weights) -> Weights:
    """Strip the chunk numbers of blocks from names."""
    return rename_weights(weights, {CHUNK_NUMBER.sub(r'\1blocks.', key): key for key in weights})


def rename_weights(weights: Weights, names: Mapping[str, str]) -> Weights:
    """Rename weights, or return them unchanged if two would get the same name.

    Args:
        weights: the weights.
        names: the new names -> the present ones, in the same order.
    """
    if len(names) < len(weights) or [*names] == [*weights]:
        return weights
    return Lazy(names, lambda name: weights[names[name]])


def without_empty_registers(weights: Weights) -> Weights:
    """Leave out empty registers: transformers saves a (1, 0, C) array for a DINOv3 without any."""
    names = [key for key in weights if not (key.endswith(REGISTERS) and not weights[key].numel())]
    return weights if len(names) == len(weights) else Lazy(names, weights.__getitem__)


def with_vit_msn_prefix(weights: Weights) -> Weights:
    """Add the prefix that transformers 5.24 leaves out before the blocks of a ViT-MSN."""
    blocks = {key for key in weights if key.startswith('encoder.layer.')}
    if not blocks or not any(key.startswith('vit.embeddings.') for key in weights):
        return weights
    names = {f'vit.{key}' if key in blocks else key: key for key in weights}
    return Lazy(names, lambda name: weights[names[name]])


def split_scanned_blocks(weights: Weights) -> Weights:
    """Split big_vision's scanned ``encoderblock`` arrays (blocks, ...) into single blocks."""
    scanned = [key for key in weights if '/encoderblock/' in key]
    if not scanned:
        return weights
    if len({weights[key].shape[:1] for key in scanned}) > 1 or not all(
        weights[key].ndim and weights[key].numel() for key in scanned
    ):
        raise ConfigError(
            f'The arrays such as {scanned[0]} hold different numbers of blocks: the checkpoint is '
            'damaged.'
        )
    check_weight_limit('The checkpoint', 'tensors', len(scanned) * weights[scanned[0]].shape[0])
    blocks = {
        key.replace('/encoderblock/', f'/encoderblock_{i}/'): (key, i)
        for key in scanned
        for i in range(weights[scanned[0]].shape[0])
    }
    names = [*(key for key in weights if key not in scanned), *blocks]

    def read(name: str) -> Tensor:
        if name not in blocks:
            return weights[name]
        key, i = blocks[name]
        return weights[key][i]

    return Lazy(names, read)
