"""Write the weights of a checkpoint to a file: in another format, dtype, or type of file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from anyfolder.complete import replacing
from vit_plugin.arch import num_heads_of_width, parse_arch
from vit_plugin.errors import ConfigError, naming
from vit_plugin.models.loading.value_checks import check_finite, overflow_remedy
from vit_plugin.weights import export, open_checkpoint, recognize
from vit_plugin.weights.carried_records import append_record, checkpoint_record
from vit_plugin.weights.hub_files import weights_in
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.provenance import PROVENANCE_KEY, Provenance, converted_record
from vit_plugin.weights.published_run import as_run
from vit_plugin.weights.saved_settings import saved_backbone

# Keys of a checkpoint's metadata that converted weights keep.
KEPT_METADATA = ('cfg', 'dataset_meta', 'epoch', 'iter')


class WeightFile(NamedTuple):
    """A file to write, of the type that its suffix names: .npz, .safetensors, .pth or .bin.

    Attributes:
        path: the file.
        source: the checkpoint, whose tensors and whose provenance the file gets.
        dtype: the dtype of floating-point weights. None: that of the checkpoint.
        license: the license of the weights. None: that of the checkpoint.
    """

    path: Path
    source: str
    dtype: str | None = None
    license: str | None = None

    def write_model(self) -> str:
        """Write all weights under their own names. A .pth or .bin also has the metadata of the run.

        Returns:
            A sentence about what was written.

        Raises:
            ConfigError: if the checkpoint is another library's, or has values that are not finite.
        """
        checkpoint = as_run(open_checkpoint(self.source))
        is_hub_folder = self.source.startswith('hf://') or weights_in(self.source)
        has_framework_names = any('backbone.' in name for name in checkpoint.weights)
        if is_hub_folder and checkpoint.meta and not has_framework_names:
            raise ConfigError(
                f'{self.source!r} has the names of another library; the commands read it as it is, '
                'and --to vit_plugin writes only its weights.'
            )
        meta = {name: value for name, value in checkpoint.meta.items() if name in KEPT_METADATA}
        self._write(checkpoint, checkpoint.weights, meta)
        return f'{len(checkpoint.weights)} tensors as they are: {self.path}'

    def write_renamed(self, format_name: str, num_heads: int | None = None) -> str:
        """Write the weights under the names of a format, without what it has no name for.

        Args:
            format_name: the format.
            num_heads: see :func:`find_heads`.

        Returns:
            Sentences about what was written and what was left out.

        Raises:
            ConfigError: if more than a head or neck would be left out, if the checkpoint has values
                that are not finite, and see :func:`find_heads`.
        """
        checkpoint = open_checkpoint(self.source)
        with naming(self.source):
            recognized = recognize(checkpoint.weights)
            state = dict(recognized)
        _check_has_encoder(checkpoint, state, format_name)
        # Other formats do not depend on the number of heads.
        heads = find_heads(checkpoint, state, num_heads) if format_name == 'jax' else 1
        exported, unnamed, target_format = export(state, format_name, heads)
        essential = [key for key in unnamed if not key.startswith(('head.', 'neck.'))]
        if essential:
            raise ConfigError(
                f'The format {target_format.name} has no name for {", ".join(essential)}, and the '
                'model would compute something else without them; choose another format.'
            )
        self._write(checkpoint, exported)
        formats = f'{recognized.format.name} to {target_format.name}'
        text = f'{len(exported)} tensors from the format {formats}: {self.path}'
        if unnamed:
            left_out = ', '.join(unnamed)
            text += f'\n{target_format.name} has no name for {left_out}, which were left out'
        return text

    def _write(
        self,
        checkpoint: Checkpoint,
        weights: Mapping[str, Tensor],
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Write tensors with their provenance record, and in a .pth or .bin with this metadata."""
        tensors = {name: self._prepared(name, value) for name, value in weights.items()}
        record = converted_record(checkpoint_record(checkpoint), str(self.path), self.license or '')
        with replacing(self.path, [self.source]) as path:
            if meta is not None and self.path.suffix in ('.pth', '.bin'):
                meta = {**meta, PROVENANCE_KEY: record.plain()}
                torch.save(dict(meta=meta, state_dict=tensors), path)
            else:
                _write_tensors(tensors, path, self.path.suffix, record)

    def _prepared(self, name: str, value: Tensor) -> Tensor:
        """A copy of a tensor, in the wanted dtype or another that the file can hold.

        safetensors rejects tensors that share memory, hence the copy.

        Raises:
            ConfigError: if a value is not finite, in the checkpoint or in the new dtype.
        """
        check_finite([(name, value)], self.source)
        if value.is_floating_point() and self.dtype:
            value = value.to(getattr(torch, self.dtype))
        if self.path.suffix == '.npz' and value.dtype == torch.bfloat16:  # numpy has no bfloat16
            value = value.float()
        check_finite([(name, value)], self.source, overflow_remedy(self.dtype))
        return value.contiguous().clone()


def _write_tensors(weights: dict[str, Tensor], path: Path, suffix: str, record: Provenance) -> None:
    """Write tensors, with their provenance record, in the type of file that the suffix names.

    ``path`` is a temporary file, whose own suffix does not count.
    """
    if suffix == '.safetensors':
        save_file(weights, path, {PROVENANCE_KEY: record.text()})
    elif suffix == '.npz':
        arrays: dict[str, Any] = {key: value.numpy() for key, value in weights.items()}
        np.savez(path, **arrays)
    else:
        torch.save(weights, path)
    append_record(path, record)  # does nothing unless the file is an archive: .npz, .pth or .bin


def _check_has_encoder(
    checkpoint: Checkpoint, state: Mapping[str, Tensor], format_name: str
) -> None:
    """Raise a ``ConfigError`` if a format names whole models, and there is no encoder."""
    # A detector may have another encoder, such as a CNN, and formats of its own.
    is_detector = any(key.startswith('bbox_head.') for key in state)
    if 'blocks.0.norm1.weight' not in state and (format_name == 'jax' or not is_detector):
        raise ConfigError(
            f'{checkpoint.source!r} has no block of an encoder, and --to {format_name} names whole '
            'models; leave --to out to write the tensors as they are.'
        )


def find_heads(
    checkpoint: Checkpoint, state: Mapping[str, Tensor], num_heads: int | None = None
) -> int:
    """The number of attention heads of a checkpoint.

    It is the given one, or that of the checkpoint's kernels or of its config, in this order. Only
    flax kernels, (..., width, heads, head width), show it. Otherwise the usual number for the width
    is taken, and printed.

    Args:
        checkpoint: the checkpoint.
        state: its weights by the names of this package.
        num_heads: the number that the user gave.

    Raises:
        ConfigError: if the number is unknown or does not divide the width.
    """
    width = state['blocks.0.norm1.weight'].shape[0]
    weights = checkpoint.weights
    kernel = next((weights[key] for key in weights if key.endswith('query/kernel')), None)
    if num_heads:
        heads = num_heads
    elif kernel is not None:
        heads = kernel.shape[-2]
    elif arch := saved_backbone(checkpoint).get('arch'):
        heads = parse_arch(arch).num_heads
    elif heads := num_heads_of_width(width):
        print(f'{heads} attention heads, as usual for the width {width}; --num-heads gives others')
    if not heads:
        raise ConfigError(
            f'{checkpoint.source!r} does not state its attention heads, and the width {width} is '
            'not a usual one; give --num-heads, the number of the model.'
        )
    if width % heads:
        raise ConfigError(
            f'{heads} attention heads do not divide the width {width}; give --num-heads, the '
            'number of the model.'
        )
    return heads
