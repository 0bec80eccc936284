"""Write the weights and configs of a trained model into a hub folder.

A folder has the names and the config of a library that can read it, if there is one, and an entry
of this package, with which it is read here as the run's own model.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from vit_plugin import __version__
from vit_plugin.deploy.deployed_module import largest
from vit_plugin.errors import ConfigError, first_line, rejecting
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.loading.value_checks import check_finite, overflow_remedy
from vit_plugin.untrusted.table import PREDICT
from vit_plugin.weights.hub_files import ENTRY, HUB_CONFIG, HUB_WEIGHTS
from vit_plugin.weights.provenance import PROVENANCE_KEY, Provenance

from .libraries import LIBRARIES, Library, tolerance_of, with_crop
from .preprocessing import processor_of, timm_data_config
from .written_task import difference, written_task

OWN_FORMAT = 'vit_plugin'  # the format for models that no other library has
PROCESSOR = 'preprocessor_config.json'
PUBLISHED_METADATA = ('classes', 'palette')  # metadata of the data set that may be published


class WrittenFolder(NamedTuple):
    """A written folder: the library that reads it, and the content of its ``config.json``.

    Attributes:
        difference: see :func:`~vit_plugin.deploy.hub.written_task.difference`.
        is_read_by_library: whether the library itself has read the folder. Otherwise it is not
            installed, and only this package's reader of its folders has.
        reason: the reason if there is no library.
    """

    library: Library | None
    config: dict[str, Any]
    difference: float = 0.0
    is_read_by_library: bool = True
    reason: str = ''

    def __str__(self) -> str:
        if self.library is None:
            return f'read by vit_plugin, and by no other library, since {self.reason}'
        name = self.library.name
        sentence = (
            f'read by vit_plugin and {name}, whose {_name_outputs(self.config)} differ by up to '
            f'{self.difference:.0e} of the largest'
        )
        if not self.is_read_by_library:
            sentence += f' (by our reader of its folders, since {name} is not installed)'
        return sentence


def _name_outputs(config: Mapping[str, Any]) -> str:
    return 'logits' if config.get('id2label') or config.get('num_classes') else 'features'


def write_model_folder(
    trained: TrainedModel,
    folder: Path,
    hub_format: str | None,
    dtype: str | None,
    record: Provenance,
) -> WrittenFolder:
    """Write weights and configs into a folder, with the provenance record of the weights.

    They are for the first library that supports the model, or else for this package alone.

    Args:
        trained: the model.
        folder: the folder, which is there.
        hub_format, dtype: see :func:`~vit_plugin.deploy.hub.publishing.publish`.
        record: the provenance record.

    Raises:
        ConfigError: if a library that was asked for does not support the model.
    """
    written, reasons = None, []
    if hub_format == OWN_FORMAT:
        libraries, reasons = [], ['--to vit_plugin asks for its own names']
    else:
        libraries = [hub_format] if hub_format else [*LIBRARIES]
    for name in libraries:
        try:
            written = _write_for_library(trained, folder, name, dtype, record)
            break
        except ConfigError as error:
            reason = first_line(error).rstrip('.')
            if hub_format:
                raise ConfigError(f'--to {hub_format}: {reason}; leave --to out.') from error
            reasons.append(reason)
    if written is None:
        written = WrittenFolder(
            library=None, config={}, reason=', and '.join(dict.fromkeys(reasons))
        )
        (folder / PROCESSOR).unlink(missing_ok=True)
        _write_weights(folder, trained.model.state_dict(), dtype, record)
    if written.library and isinstance(trained.model.backbone, WrappedBackbone):
        return written  # this package reads the library's own config, too
    entry = dict(
        version=__version__,
        config=_config_text(trained, written.library),
        dataset_meta=_published_metadata(trained),
        provenance=record.plain(),
    )
    _write_json(folder / HUB_CONFIG, {**written.config, ENTRY: entry})
    return written


def _write_for_library(
    trained: TrainedModel, folder: Path, hub_format: str, dtype: str | None, record: Provenance
) -> WrittenFolder:
    """Write the files of a library, and check that it reads the same model.

    Raises:
        ConfigError: if the library does not support the model.
    """
    task, pixels = written_task(trained), timm_data_config(trained)
    errors = []
    for config, weights in task.folders(trained, hub_format, pixels):
        _write_weights(folder, weights, dtype, record)
        _write_json(folder / HUB_CONFIG, config)
        _write_json(folder / PROCESSOR, processor_of(pixels, task.processor))
        size = pixels['input_size'][1:]
        try:
            return _compare(trained, hub_format, folder, config, tolerance_of(trained, dtype), size)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]  # the error of the likeliest folder


def _compare(
    trained: TrainedModel,
    hub_format: str,
    folder: Path,
    config: dict[str, Any],
    tolerance: float,
    size: Sequence[int],
) -> WrittenFolder:
    """Read a folder back with a library's readers, and describe the comparison.

    Raises:
        ConfigError: if the outputs differ.
    """
    library, readers = LIBRARIES[hub_format], written_task(trained).readers[hub_format]
    with rejecting(f'{library.name} cannot read it'):
        all_outputs = [reader(folder, config) for reader in readers]
        off_by = largest(
            difference(trained, outputs, size) for outputs in all_outputs if outputs is not None
        )
    if not off_by <= tolerance:  # also for NaN
        raise ConfigError(
            f"{library.name}'s {_name_outputs(config)} differ by {off_by:.1e} of the largest"
        )
    # The last reader is the library's own, which returns None if it is not installed.
    return WrittenFolder(library, config, off_by, all_outputs[-1] is not None)


def _write_weights(
    folder: Path, weights: Mapping[str, Tensor], dtype: str | None, record: Provenance
) -> None:
    float_dtype = getattr(torch, dtype) if dtype else None
    # Copy tensors, since safetensors rejects shared memory.
    tensors = {
        name: value.to(float_dtype if value.is_floating_point() else None).contiguous().clone()
        for name, value in weights.items()
    }
    check_finite(tensors.items(), '', overflow_remedy(dtype))
    save_file(tensors, folder / HUB_WEIGHTS, {'format': 'pt', PROVENANCE_KEY: record.text()})
    (folder / HUB_WEIGHTS).chmod(0o644)  # safetensors writes files that other users cannot read


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + '\n', encoding='utf-8')


def _config_text(trained: TrainedModel, library: Library | None) -> str:
    """The settings for prediction, in the format of a checkpoint, without names of files.

    The center crop is the library's, which may be one pixel off the run's.
    """
    settings = trained.cfg.to_dict()
    if library:
        settings = with_crop(settings, library.crop)
    return ''.join(f'{name} = {settings[name]!r}\n' for name in PREDICT if name in settings)


def _published_metadata(trained: TrainedModel) -> dict[str, Any]:
    values = {name: trained.meta.get(name) for name in PUBLISHED_METADATA}
    return {name: list(value) for name, value in values.items() if isinstance(value, (list, tuple))}
