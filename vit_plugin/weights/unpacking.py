"""Unpack the weights of a checkpoint: from wrappers, stacks and joint layers to one tensor for each of ours."""

import re
from collections.abc import Mapping

from torch import Tensor

from vit_plugin.errors import ConfigError

from .files import LazyArrays, checked


def prepared(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Remove wrappers, stacks and joint layers from a checkpoint's weights, and check every tensor.

    Raises:
        ConfigError: if a name is not a string, or a value is not a dense tensor of plain numbers.
    """
    return parted(unstacked(unwrapped(checked(weights))))


def unwrapped(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Remove the ``module.`` that torch's wrappers add to every name."""
    inside = {key.removeprefix('module.'): key for key in weights}
    if not weights or not all(key.startswith('module.') for key in weights):
        return weights
    return LazyArrays(list(inside), lambda name: weights[inside[name]])


def unstacked(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Split big_vision's scanned blocks, stored as (blocks, ...) under ``encoderblock``, into single blocks."""
    scanned = [key for key in weights if '/encoderblock/' in key]
    if not scanned:
        return weights
    if len({weights[key].shape[:1] for key in scanned}) > 1 or not all(weights[key].numel() for key in scanned):
        raise ConfigError(f'The checkpoint has blocks of several numbers in {scanned[0]} and the like: it is damaged.')
    blocks = {key.replace('/encoderblock/', f'/encoderblock_{i}/'): (key, i)
              for key in scanned for i in range(weights[scanned[0]].shape[0])}
    names = [*(key for key in weights if key not in scanned), *blocks]

    def read(name: str) -> Tensor:
        if name not in blocks:
            return weights[name]
        key, i = blocks[name]
        return weights[key][i]

    return LazyArrays(names, read)


_IN_PROJ = re.compile(r'(?P<block>.*blocks\.\d+\.)in_proj\.(?P<kind>weight|bias)')


def parted(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Split the first layers of timm's parallel blocks (arXiv:2302.05442) into those of the MLP and of attention.

    Such a layer has the rows of the MLP's hidden values, then those of queries, keys and values. The other parts of
    these blocks get the names that they have in plain blocks.
    """
    joint = {key: match for key in weights if (match := _IN_PROJ.fullmatch(key))}
    if not joint:
        return weights
    parts: dict[str, tuple[str, slice]] = {}
    for key, match in joint.items():
        width = weights[f'{match["block"]}in_proj.weight'].shape[1]
        parts[f'{match["block"]}mlp.fc1.{match["kind"]}'] = key, slice(-3 * width)
        parts[f'{match["block"]}attn.qkv.{match["kind"]}'] = key, slice(-3 * width, None)
    for key in weights.keys() - joint.keys():
        parts[_PARALLEL.sub(lambda found: PARALLEL[found[0]], key)] = key, slice(None)
    return LazyArrays(list(parts), lambda name: weights[parts[name][0]][parts[name][1]])


# Parts of timm's parallel blocks -> those of plain blocks.
PARALLEL = {'.in_norm.': '.norm1.', '.attn_out_proj.': '.attn.proj.', '.mlp_out_proj.': '.mlp.fc2.',
            '.mlp_bias': '.mlp.fc1.bias', '.ls.gamma': '.ls1.gamma', '.q_norm.': '.attn.q_norm.',
            '.k_norm.': '.attn.k_norm.'}
_PARALLEL = re.compile('|'.join(map(re.escape, PARALLEL)))
