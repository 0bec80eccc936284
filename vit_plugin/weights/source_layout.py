"""Write trained weights back in the original checkpoint's layout.

The library that the file came from must be able to read it. So tensors that the training did not
change stay bit-identical, as does everything that the run does not have.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.logging import print_log
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from anyfolder.complete import new_folder, replacing
from vit_plugin.errors import ConfigError, naming

from .carried_records import append_record, checkpoint_record
from .hub_files import model_config_next_to
from .lora import BASE_LAYER, has_adapters, merge_adapters
from .opening import Checkpoint
from .provenance import PROVENANCE_KEY, Provenance, converted_record
from .published import MODEL_PREFIXES, without_model_prefix, without_training_prefixes
from .reading.files import format_suffix
from .reading.lazy import Weights
from .reading.shards import INDEX, shard_files
from .reading.tensors import find_tensors
from .recognition import Recognized, recognize

RUN_PREFIX = 'backbone.'  # prefix of a run's names
ENCODER_PREFIXES = ('blocks.', 'patch_embed.')  # parts that a run of the same model has
# Entries that only resume the original run; they are not written.
RESUME_ENTRIES = ('optimizer', 'param_schedulers', 'message_hub')


def changed_tensors(original: Checkpoint, trained: Checkpoint) -> dict[str, Tensor]:
    """The tensors of a file that a run has changed, by the file's names and dtypes.

    They are tensors of the backbone, and of the rest of the model if the run has it completely,
    with the same classes. LoRA adapters are added to the file's own weights, in float64. For a
    frozen tensor that the run stores in lower precision, the file's is kept.

    Args:
        original: the file.
        trained: a checkpoint of a run that began with it.

    Raises:
        ConfigError: if the run's backbone does not have the file's tensors.
    """
    weights, meta = find_tensors(trained.content)
    names = {key.removeprefix(RUN_PREFIX).replace(BASE_LAYER, '.') for key in weights}
    ours = recognize(without_training_prefixes(original.weights), names)
    writable = _writable_names(original, ours)
    matching = _matching_weights(weights, ours, writable, original.source)
    trained_weights = dict(merge_adapters(_with_unchanged(matching, ours), meta))
    # Only the arrays of flax have an axis for the heads; other formats need no number.
    num_heads = next(filter(None, (step.heads(ours.theirs) for step in ours.steps.values())), 1)
    changed: dict[str, Tensor] = {}
    for name, file_value in ours.items():
        value = trained_weights.get(name)
        if value is None and not name.startswith(ENCODER_PREFIXES):
            continue  # belongs to a head or a detector
        if value is not None and name == 'pos_embed':
            value = _without_zero_rows(value, file_value.shape[1])
        if value is None or value.shape != file_value.shape:
            shape = 'not in' if value is None else f'{tuple(value.shape)} in'
            raise ConfigError(
                f'{original.source!r} has {name} as {tuple(file_value.shape)}, which is {shape} '
                f'the backbone of {trained.source!r}; give a run that began with this file and '
                'kept its native size.'
            )
        value = value.to(file_value.dtype)
        if torch.equal(value, file_value):
            continue
        if name not in writable:
            raise ConfigError(
                f'{original.source!r} has {name} in parts or under names that are not written '
                'back; convert it with vit-plugin convert first, and begin with that.'
            )
        changed.update(_to_theirs(ours, name, value, num_heads))
    return changed


def _writable_names(original: Checkpoint, ours: Recognized) -> set[str]:
    """Our names of tensors whose arrays are in the file, and are shared with no other tensor."""
    file_names = {*map(without_model_prefix, original.weights)}
    return {
        name
        for name, step in ours.steps.items()
        if not (step.thirds or step.tokens)
        and file_names >= {*map(without_model_prefix, step.theirs)}
    }


def _matching_weights(
    weights: Weights, ours: Recognized, writable: set[str], source: str
) -> Weights:
    """The weights of a run without ``RUN_PREFIX``; the modules around its backbone only if all fit.

    Args:
        weights: all weights of the run.
        ours: the weights of the file.
        writable: see :func:`_writable_names`.
        source: the file, for a message if the run has other modules around its backbone.
    """
    # The modules around the backbone, such as `neck` and `head`.
    outer_modules = {key.partition('.')[0] for key in weights} - {RUN_PREFIX[:-1]}
    weights = {key.removeprefix(RUN_PREFIX): value for key, value in weights.items()}
    if all(
        name in weights and weights[name].shape == ours[name].shape and name in writable
        for name in ours
        if name.partition('.')[0] in outer_modules
    ):
        return weights
    print_log(f'{source} keeps its {", ".join(sorted(outer_modules))}.', 'current')
    return {
        key: value for key, value in weights.items() if key.partition('.')[0] not in outer_modules
    }


def _to_theirs(
    ours: Recognized, name: str, value: Tensor, num_heads: int
) -> Iterator[tuple[str, Tensor]]:
    """The arrays of a tensor of ours, by their names in the file, in the file's shapes."""
    for key, part in ours.steps[name].to_theirs(value, num_heads).items():
        shape = ours.theirs[key].shape
        if part.numel() == shape.numel():
            yield key, part.reshape(shape)  # old norms of flax are (1, 1, 1, C)
        else:  # a position table may begin with a row that the file lacks
            yield key, part[tuple(slice(-side, None) for side in shape)]


def _with_unchanged(weights: Weights, ours: Weights) -> dict[str, Tensor]:
    """The weights of a run, but the file's tensor where both are equal in the run's precision."""
    values = {}
    for key, value in weights.items():
        file_value = ours.get(key.replace(BASE_LAYER, '.'))
        is_unchanged = file_value is not None and torch.equal(file_value.to(value.dtype), value)
        values[key] = file_value if file_value is not None and is_unchanged else value
    return values


def export_to_source_layout(original: Checkpoint, trained: Checkpoint, target: Path) -> str:
    """Rewrite a file with the backbone of a run, and with its heads if they match the file's.

    Args:
        original: the file, or the weights in a hub folder.
        trained: a checkpoint of a run that began with it.
        target: the file to write, with the same suffix; or a new folder for a folder.

    Returns:
        A sentence about what was written.

    Raises:
        ConfigError: see :func:`changed_tensors`, and if the target cannot be written.
    """
    path = original.path
    if path and target.suffix in ('.safetensors', '.npz'):
        # A checkpoint folder, or a file of torch, may have no suffix.
        suffix = '' if path.is_dir() else format_suffix(path)
        if suffix != target.suffix:
            raise ConfigError(
                f'{str(target)!r} is of another type than {path.name!r}, whose layout it gets; '
                f'give a name that ends in {suffix or ".pth"}.'
            )
    with naming(trained.source):
        changed = changed_tensors(original, trained)
    total = len(original.weights)
    record = converted_record(checkpoint_record(trained), str(target))
    if is_hub_folder(original) and path:
        with new_folder(target) as folder:
            for config in sorted(path.parent.iterdir()):
                if config.suffix == '.json' and config.is_file():
                    shutil.copyfile(config, folder / config.name)
            is_index = path.name == INDEX
            for name in sorted({*shard_files(path).values()}) if is_index else [path.name]:
                _write(path.with_name(name), original.content, changed, folder / name, record)
    else:
        with replacing(target, [path] if path else []) as file:
            _write(path, _merged_content(original), changed, file, record)
    return f'{target}: {len(changed)} of the {total} tensors of {original.source} have changed'


def _without_zero_rows(table: Tensor, length: int) -> Tensor:
    """A table (1, N, C) without the zero rows of tokens that have no row in the file.

    They follow the first row. Rows that are not zero stay.
    """
    extra = table.shape[1] - length
    if extra <= 0 or table[:, 1 : 1 + extra].any():
        return table
    return torch.cat((table[:, :1], table[:, 1 + extra :]), dim=1)


def _merged_content(original: Checkpoint) -> Any:
    """The whole content, with adapters merged into their weights."""
    if not has_adapters(find_tensors(original.content)[0]):
        return original.content
    meta = {name: value for name, value in original.meta.items() if name != 'lora'}
    return dict(meta=meta, state_dict=original.weights)


def is_hub_folder(original: Checkpoint) -> bool:
    """True if the files of a hub folder are next to the weights."""
    return model_config_next_to(original.path) is not None


def _write(
    path: Path | None, content: Any, changed: Weights, target: Path, record: Provenance
) -> None:
    """Write one file with changed tensors, and with the provenance record in its metadata.

    Args:
        path: the original file. None for the name of a timm model, which has none.
        content: the content of the original.
        changed: the changed tensors, by the original's names.
        target: the file to write. Its suffix decides the file format.
        record: the provenance record.
    """
    if target.suffix == '.safetensors':
        metadata, tensors = dict[str, str](), dict(content) if path is None else {}
        if path is not None:
            with safe_open(path, framework='pt') as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        tensors = _replace_tensors(tensors, changed)
        metadata = {**metadata, PROVENANCE_KEY: record.text()}
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, target, metadata)
        return
    if target.suffix == '.npz':
        tensors = _replace_tensors(dict(content), changed)
        np.savez(target, **{name: tensor.numpy() for name, tensor in tensors.items()})
    else:
        torch.save(_replace_tensors(content, changed), target)
    append_record(target, record)


def _replace_tensors(content: Any, changed: Weights) -> Any:
    """The content that a training saved, with the changed tensors in each dict that has them.

    ``rfdetr`` saves its weights twice, once by the names of a LightningModule. Entries for resuming
    are left out.
    """
    if not isinstance(content, Mapping):
        return content
    replaced = {
        key: _replace_tensors(value, changed)
        for key, value in content.items()
        if key not in RESUME_ENTRIES
    }
    for key, value in changed.items():
        for name in {prefix + key for prefix in ('', *MODEL_PREFIXES)} & replaced.keys():
            if isinstance(replaced[name], Tensor) and replaced[name].shape == value.shape:
                replaced[name] = value
    return replaced
