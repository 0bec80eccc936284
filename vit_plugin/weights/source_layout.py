"""Write trained weights back in the original checkpoint's layout.

The library that the file came from must be able to read it. So tensors that the training did not
change stay bit-identical, as does everything that the run does not have.
"""

import shutil
from collections.abc import Mapping
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

from .carried_records import append_to, of_checkpoint
from .hub import HUB_CONFIG, HUB_FILES
from .lora import BASE, has_adapters, merged
from .opening import Checkpoint
from .provenance import PROVENANCE_KEY, Provenance, converted
from .published import LIGHTNING, strip_backbone_prefix
from .reading.files import find_tensors
from .reading.lazy import Weights
from .reading.shards import INDEX, shard_files
from .recognition import recognize

RUN_PREFIX = 'backbone.'  # prefix of a run's names
ENCODER_PREFIXES = ('blocks.', 'patch_embed.')  # parts that a run of the same model has
# Entries for resuming, which would resume another run.
OF_A_RUN = ('optimizer', 'param_schedulers', 'message_hub')


def changed_tensors(original: Checkpoint, trained: Checkpoint) -> dict[str, Tensor]:
    """The tensors of a file that a run has changed, by the file's names and dtypes.

    They are tensors of the backbone, and of the rest of the model if the run has it completely,
    with the same classes. LoRA adapters are added to the file's own weights, in float64. For a
    frozen tensor that the run stores in lower precision, the file's is kept.

    Args:
        original: the file.
        trained: a checkpoint of a run that began with it.

    Raises:
        ConfigError: if the run's backbone is another model.
    """
    weights, meta = find_tensors(trained.content)
    parts = {key.partition('.')[0] for key in weights} - {RUN_PREFIX[:-1]}
    weights = {key.removeprefix(RUN_PREFIX): value for key, value in weights.items()}
    ours = recognize(
        strip_backbone_prefix(original.weights), {key.replace(BASE, '.') for key in weights}
    )
    written = {name.removeprefix(LIGHTNING) for name in find_tensors(_plain(original))[0]}

    def is_written(name: str) -> bool:
        step = ours.steps[name]
        whole = not (step.thirds or step.tokens)
        return whole and written >= {key.removeprefix(LIGHTNING) for key in step.theirs}

    if not all(
        name in weights and weights[name].shape == ours[name].shape and is_written(name)
        for name in ours
        if name.partition('.')[0] in parts
    ):
        print_log(f'{original.source} keeps its {", ".join(sorted(parts))}.', 'current')
        weights = {key: weights[key] for key in weights if key.partition('.')[0] not in parts}
    trained_weights = dict(merged(_with_unchanged(weights, ours), meta))
    changed: dict[str, Tensor] = {}
    for name, first in ours.items():
        if name not in trained_weights and not name.startswith(ENCODER_PREFIXES):
            continue  # belongs to a head or a detector
        if name == 'pos_embed' and name in trained_weights:
            trained_weights[name] = _without_rows(trained_weights[name], first.shape[1])
        if name not in trained_weights or trained_weights[name].shape != first.shape:
            shape = (
                f'{tuple(trained_weights[name].shape)} in' if name in trained_weights else 'not in'
            )
            raise ConfigError(
                f'{original.source!r} has {name} as {tuple(first.shape)}, which is {shape} the '
                f'backbone of {trained.source!r}; give a run that began with this file and kept '
                'its native size.'
            )
        value = trained_weights[name].to(first.dtype)
        if torch.equal(value, first):
            continue
        if not is_written(name):
            raise ConfigError(
                f'{original.source!r} has {name} in parts or under names that are not written '
                'back; convert it with vit-plugin convert first, and begin with that.'
            )
        for key, part in ours.steps[name].unmake(value, 1).items():
            # The table may begin with a row that the file lacks.
            changed[key] = part[tuple(slice(-side, None) for side in ours.theirs[key].shape)]
    return changed


def _with_unchanged(weights: Weights, ours: Weights) -> dict[str, Tensor]:
    """The weights of a run, or the file's own if they are equal in the run's precision."""
    merged_weights = {}
    for key, value in weights.items():
        same = ours.get(key.replace(BASE, '.'))
        is_same = same is not None and torch.equal(same.to(value.dtype), value)
        merged_weights[key] = same if same is not None and is_same else value
    return merged_weights


def export_to_source_layout(original: Checkpoint, trained: Checkpoint, target: Path) -> str:
    """Rewrite a file with the backbone of a run, and with its heads if they match the file's.

    Args:
        original: the file, or the weights in a folder of the hub.
        trained: a checkpoint of a run that began with it.
        target: the file to write, with the same suffix; or a new folder for a folder.

    Returns:
        A sentence about what was written.

    Raises:
        ConfigError: see :func:`changed_tensors`, and if the target cannot be written.
    """
    with naming(trained.source):
        changed = changed_tensors(original, trained)
    path, total = original.path, len(original.weights)
    record = converted(of_checkpoint(trained), str(target))
    if is_folder(original) and path:
        with new_folder(target) as folder:
            for other in sorted(path.parent.iterdir()):
                if other.suffix == '.json' and other.is_file():
                    shutil.copyfile(other, folder / other.name)
            for name in (
                sorted({*shard_files(path).values()}) if path.name == INDEX else [path.name]
            ):
                _write(path.with_name(name), original.content, changed, folder / name, record)
    else:
        with replacing(target, [path] if path else []) as file:
            _write(path, _plain(original), changed, file, record)
    return f'{target}: {len(changed)} of the {total} tensors of {original.source} are other ones'


def _without_rows(table: Tensor, length: int) -> Tensor:
    """A table (1, N, C) without the zero rows of tokens that have no row in the file."""
    more = table.shape[1] - length
    if more <= 0 or table[:, 1 : 1 + more].any():
        return table
    return torch.cat((table[:, :1], table[:, 1 + more :]), dim=1)


def _plain(original: Checkpoint) -> Any:
    """The whole content, with adapters merged into their weights."""
    if not has_adapters(find_tensors(original.content)[0]):
        return original.content
    meta = {name: value for name, value in original.meta.items() if name != 'lora'}
    return dict(meta=meta, state_dict=original.weights)


def is_folder(original: Checkpoint) -> bool:
    """True if the files of a hub folder are next to the weights."""
    path = original.path
    return path is not None and path.name in HUB_FILES and path.with_name(HUB_CONFIG).is_file()


def _write(
    path: Path | None, content: Any, changed: Weights, target: Path, record: Provenance
) -> None:
    """Write one file in the format of ``path``, with the provenance record in its metadata.

    timm models by name have no path.
    """
    if target.suffix == '.safetensors':
        metadata, tensors = dict[str, str](), dict(content) if path is None else {}
        if path is not None:
            with safe_open(path, framework='pt') as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        tensors = _replace_tensors(tensors, changed)
        metadata = {**metadata, PROVENANCE_KEY: record.text()}
        save_file({name: one.contiguous() for name, one in tensors.items()}, target, metadata)
        return
    if target.suffix == '.npz':
        tensors = _replace_tensors(dict(content), changed)
        np.savez(target, **{name: one.numpy() for name, one in tensors.items()})
    else:
        torch.save(_replace_tensors(content, changed), target)
    append_to(target, record)


def _replace_tensors(content: Any, changed: Weights) -> Any:
    """The content that a training saved, with these tensors replaced in each dict that has them.

    ``rfdetr`` saves its weights twice, once by the names of a LightningModule.
    """
    if not isinstance(content, Mapping):
        return content
    content_now = {
        key: _replace_tensors(value, changed)
        for key, value in content.items()
        if key not in OF_A_RUN
    }
    for key, value in changed.items():
        for name in {key, LIGHTNING + key} & content_now.keys():
            if isinstance(content_now[name], Tensor) and content_now[name].shape == value.shape:
                content_now[name] = value
    return content_now
