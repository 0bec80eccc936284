"""Change each field of transformers' config of a model, and check that our reader respects it.

A published ``config.json`` may have any value in any field. Each field gets a second value, and is
removed. In each case our model must compute the same as that of transformers, or our reader must
raise an error that names the field.
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
# Largest allowed difference relative to the largest output. It is not that of float64, since
# transformers computes some values in float32.
TOLERANCE = 1e-7
# Second values of fields that several classes have. A number is doubled, and a bool inverted.
SECOND_VALUES: Mapping[str, Any] = dict(
    architectures=['AnotherModel'],
    dtype='float16',
    hidden_act='relu',
    id2label={0: 'cat', 1: 'dog', 2: 'owl'},
    label2id={'owl': 0, 'dog': 1, 'cat': 2},
    layer_norm_eps=0.25,  # so large that outputs change
    num_channels=1,
    out_features=['stage1'],
    out_indices=[1],
    patch_size=[8, 8],
    pos_embed_jitter=1.5,
    pos_embed_shift=0.5,
    problem_type='regression',
    transformers_version='4.0.0',
)
UNUSED = ('num_batches_tracked', 'mask_token')  # ends of names of weights that change no output
CHANGES = ('rebuilt', 'edited', 'missing')  # see Walked.changed
# Field -> fields that it contradicts when it is changed, which an error may name instead.
INSTEAD = dict(is_hybrid=('backbone_config', 'neck_hidden_sizes'))


class Walked(NamedTuple):
    """A walk over the fields of a small model of transformers, and how both models compute outputs.

    Attributes:
        config: class of the config.
        model: class of the model.
        given: arguments of the config that make the model small.
        second: second values of fields; ``outer.inner`` names a field of a nested config.
        size: height and width of its images in pixels.
        theirs: model of transformers -> a function from images to its outputs.
        ours: folder of a saved model -> the same function of our model.
    """

    config: Any
    model: Any
    given: Mapping[str, Any]
    second: Mapping[str, Any]
    size: tuple[int, int]
    theirs: Callable[[nn.Module], Outputs]
    ours: Callable[[Path], Outputs]

    def names(self) -> Iterator[str]:
        """The names of all fields; for a nested config, ``outer.inner`` of its own fields."""
        config = self.config(**self.given)
        for name in _fields(self.config):
            if hasattr(part := getattr(config, name, None), 'model_type'):
                inner_names = [inner for inner in _fields(type(part)) if inner not in shared()]
                yield from (f'{name}.{inner}' for inner in inner_names)
            else:
                yield name

    def changes(self, name: str) -> tuple[str, ...]:
        """How to change a field, see :meth:`changed`.

        Fields that all classes share determine no shape: no new model is needed.
        """
        return ('edited',) if name in shared() else CHANGES

    def value(self, name: str) -> Any:
        """A second value of a field."""
        part, _, last = name.rpartition('.')
        if name in self.second:
            return self.second[name]
        if last in SECOND_VALUES:
            return SECOND_VALUES[last]
        config = self.config(**self.given)
        first = getattr(getattr(config, part) if part else config, last)
        if isinstance(first, bool):
            return not first
        assert isinstance(first, (int, float)), f'{name}={first!r} needs a second value'
        return 2 * first or 1

    def faults(self, path: Path) -> dict[str, str]:
        """What is wrong, by field and kind of change. Empty if all is right.

        Args:
            path: a folder for the files.
        """
        base = self.folder(path / 'base')
        faults = {'as it is': self.fault(base)}
        for name in self.names():
            for how in self.changes(name):
                folder = path / f'{name}_{how}'
                try:
                    self.changed(base, folder, name, how)
                except Exception:  # transformers rejects the value
                    continue
                faults[f'{name}, {how}'] = self.fault(folder, name, how)
                shutil.rmtree(folder)
        return {name: text for name, text in faults.items() if text}

    def folder(self, path: Path, **changes: Any) -> Path:
        """Save a model with random weights and these values of fields. Returns its folder."""
        from transformers.utils import logging

        logging.set_verbosity_error()  # no warnings about weights that do not fit an edited config
        logging.disable_progress_bar()
        torch.manual_seed(0)
        values: dict[str, Any] = dict(self.given)
        for name, value in changes.items():
            part, _, last = name.rpartition('.')
            if part:
                values[part] = {**values[part], last: value}
            else:
                values[last] = value
        model = self.model(self.config(**values))
        original = {name: value.clone() for name, value in model.named_buffers()}
        randomize(model, std=0.2)
        for name, value in model.named_buffers():
            if name.endswith(('.n_points_scale', '.num_points_scale')):  # computed from the config
                value.copy_(original[name])
            if name.endswith('attn_mask_probs'):  # a probability below 1 makes the mask random
                nn.init.ones_(value)
        model.save_pretrained(path)
        return path

    def fault(self, path: Path, name: str = '', how: str = '') -> str:
        """What is wrong with the model in a folder, or ``''``.

        Args:
            path: the folder.
            name: the field that was changed, or ``''`` if none was.
            how: how it was changed, see :meth:`changed`.
        """
        try:
            our_model = self.ours(path)
        except ConfigError as error:
            last = name.rpartition('.')[2]
            names = [last, *INSTEAD.get(last, ())] if last else []
            return '' if any(field in str(error) for field in names) else f'not named: {error}'
        try:
            model, loading = self.model.from_pretrained(
                path, output_loading_info=True, dtype=torch.float64
            )
        except Exception:
            return ''  # transformers does not read it
        # Missing weights would be random, so outputs could not be compared.
        missing = [key for key in loading['missing_keys'] if not key.endswith(UNUSED)]
        if missing:
            return '' if how == 'missing' else f'transformers lacks {missing}'
        model.config.return_dict = True  # theirs() reads outputs by name
        images = torch.rand(1, 3, *self.size, dtype=torch.float64)
        with torch.no_grad(), doubled():
            try:
                their_outputs = self.theirs(model.eval())(images)
            except Exception:
                return ''  # transformers cannot compute with it
            our_outputs = our_model(images)
        for theirs, ours in zip(their_outputs, our_outputs, strict=True):
            if theirs.shape != ours.shape:
                return f'{tuple(ours.shape)} in place of {tuple(theirs.shape)}'
            largest, distance = theirs.abs().max().item(), (theirs - ours).abs().max().item()
            if not distance <= TOLERANCE * largest:  # also if it is NaN
                return f'it differs by {distance:.1e} of {largest:.1e}'
        return ''

    def changed(self, base: Path, path: Path, name: str, how: str) -> Path:
        """Write a folder in which one field has its second value, or is missing.

        Args:
            base: the folder of the unchanged model, as :meth:`folder` writes it.
            path: the new folder.
            name: the field.
            how: ``'rebuilt'``: a new model with the second value; ``'edited'``: the weights of
                ``base`` with the second value; ``'missing'``: those without the field.
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
    # Some classes store the property out_features as _out_features.
    names = [field.name for field in fields(config)]
    return [name[1:] if name.startswith('_out_') else name for name in names]
