"""Every field of a class of configs in transformers at a second value, and without a value.

The model here computes the same, or its reader names the field in a sentence.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tiny_models import randomize
from torch import Tensor, nn

from benchmarks.detectors_reference import doubled
from vit_plugin.errors import ConfigError

Outputs = Callable[[Tensor], Sequence[Tensor]]
TOLERANCE = 1e-7  # of the largest output, in float64; some of theirs are computed in float32
# Second values of fields that several classes have. Numbers and switches need none.
SECOND: Mapping[str, Any] = dict(
    architectures=['AnotherModel'],
    dtype='float16',
    hidden_act='relu',
    id2label={0: 'cat', 1: 'dog', 2: 'owl'},
    label2id={'owl': 0, 'dog': 1, 'cat': 2},
    layer_norm_eps=0.25,  # so that it shows
    num_channels=1,
    out_features=['stage1'],
    out_indices=[1],
    patch_size=[8, 8],
    pos_embed_jitter=1.5,
    pos_embed_shift=0.5,
    problem_type='regression',
    transformers_version='4.0.0',
)
UNUSED = ('num_batches_tracked', 'mask_token')
HOWS = ('rebuilt', 'edited', 'missing')
# Fields that are not named where they contradict another one, which is.
INSTEAD = dict(is_hybrid='backbone_config neck_hidden_sizes')


class Walked(NamedTuple):
    """A small model of transformers, and how both compute.

    Attributes:
        config: its class of configs.
        model: its class.
        given: its config's values.
        second: second values of fields, those of a config in a field by ``field.name``.
        size: of its images (height, width).
        theirs: a model of transformers -> its outputs.
        ours: a folder -> the same of the model here.
    """

    config: Any
    model: Any
    given: Mapping[str, Any]
    second: Mapping[str, Any]
    size: tuple[int, int]
    theirs: Callable[[nn.Module], Outputs]
    ours: Callable[[Path], Outputs]

    def names(self) -> Iterator[str]:
        """The fields, and in place of a config in a field its own ones."""
        config = self.config(**self.given)
        for name in _fields(self.config):
            if hasattr(part := getattr(config, name, None), 'model_type'):
                own = [inside for inside in _fields(type(part)) if inside not in shared()]
                yield from (f'{name}.{inside}' for inside in own)
            else:
                yield name

    def hows(self, name: str) -> tuple[str, ...]:
        """What to do with a field: those that all classes share determine no shape."""
        return ('edited',) if name in shared() else HOWS

    def value(self, name: str) -> Any:
        """A second value of a field."""
        part, _, last = name.rpartition('.')
        if name in self.second:
            return self.second[name]
        if last in SECOND:
            return SECOND[last]
        config = self.config(**self.given)
        first = getattr(getattr(config, part) if part else config, last)
        if isinstance(first, bool):
            return not first
        assert isinstance(first, (int, float)), f'{name}={first!r} needs a second value'
        return 2 * first or 1

    def faults(self, path: Path) -> dict[str, str]:
        """What is wrong, by the field and what was done with it.

        Args:
            path: a folder for the files.
        """
        base = self.folder(path / 'base')
        found = {'as it is': self.fault(base)}
        for name in self.names():
            for how in self.hows(name):
                folder = path / f'{name}_{how}'
                try:
                    self.changed(base, folder, name, how)
                except Exception:  # transformers refuses the value
                    continue
                found[f'{name}, {how}'] = self.fault(folder, name, how)
                shutil.rmtree(folder)
        return {name: words for name, words in found.items() if words}

    def folder(self, path: Path, **changes: Any) -> Path:
        """A folder as it is saved, with random weights and these values of fields."""
        from transformers.utils import logging

        logging.set_verbosity_error()  # of what an edited config does not fit
        logging.disable_progress_bar()
        torch.manual_seed(0)
        given: dict[str, Any] = dict(self.given)
        for name, value in changes.items():
            part, _, last = name.rpartition('.')
            if part:
                given[part] = {**given[part], last: value}
            else:
                given[last] = value
        model = self.model(self.config(**given))
        kept = {name: value.clone() for name, value in model.named_buffers()}
        randomize(model, std=0.2)
        for name, value in model.named_buffers():
            if name.endswith(('.n_points_scale', '.num_points_scale')):  # from the config
                value.copy_(kept[name])
            if name.endswith('attn_mask_probs'):  # another value would be a random mask
                nn.init.ones_(value)
        model.save_pretrained(path)
        return path

    def fault(self, path: Path, name: str = '', how: str = '') -> str:
        """Nothing, or what is wrong with the model in a folder, of which a field was changed."""
        try:
            mine = self.ours(path)
        except ConfigError as error:
            last = name.rpartition('.')[2] or 'nothing'
            words = [last, *INSTEAD.get(last, '').split()]
            return '' if any(word in str(error) for word in words) else f'not named: {error}'
        try:
            model, loading = self.model.from_pretrained(
                path, output_loading_info=True, dtype=torch.float64
            )
        except Exception:  # of any kind
            return ''  # transformers does not read it
        # Random, but for counters of norms and a token of masks, which change nothing.
        lost = [key for key in loading['missing_keys'] if not key.endswith(UNUSED)]
        if lost:
            return '' if how == 'missing' else f'transformers lacks {lost}'
        model.config.return_dict = True  # of outputs, which is not their values
        images = torch.rand(1, 3, *self.size, dtype=torch.float64)
        with torch.no_grad(), doubled():
            try:
                wanted = self.theirs(model.eval())(images)
            except Exception:
                return ''  # transformers does not compute it
            found = mine(images)
        for one, other in zip(wanted, found, strict=True):
            if one.shape != other.shape:
                return f'{tuple(other.shape)} in place of {tuple(one.shape)}'
            largest, distance = one.abs().max().item(), (one - other).abs().max().item()
            if not distance <= TOLERANCE * largest:
                return f'it differs by {distance:.1e} of {largest:.1e}'
        return ''

    def changed(self, base: Path, path: Path, name: str, how: str) -> Path:
        """The folder ``base`` with a field at its second value, or without it.

        Args:
            base: as :meth:`folder` writes it.
            path: the new folder.
            name: of the field.
            how: ``'rebuilt'``: another model; ``'edited'``: the same weights with another
                config; ``'missing'``: the same without the field.
        """
        if how == 'rebuilt':
            return self.folder(path, **{name: self.value(name)})
        shutil.copytree(base, path)
        config = json.loads((path / 'config.json').read_text())
        part, _, last = name.rpartition('.')
        entries = config[part] if part else config
        entries.pop(last, None)
        if how == 'edited':
            entries[last] = self.value(name)
        (path / 'config.json').write_text(json.dumps(config))
        return path


def shared() -> set[str]:
    """The fields that all classes of configs have."""
    from transformers import PreTrainedConfig

    return {*_fields(PreTrainedConfig)}


def _fields(config: Any) -> list[str]:
    names = [field.name for field in fields(config)]
    return [name[1:] if name.startswith('_out_') else name for name in names]
