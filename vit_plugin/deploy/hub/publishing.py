"""Write a trained model as a folder of the hub, and upload it.

A folder has the names and the config of a library that can read it, if there is one, and an entry
of this package, with which it is read here as the run's own model.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from anyfolder.complete import check_target, new_folder
from vit_plugin import __version__
from vit_plugin.deploy.deployed_module import largest
from vit_plugin.errors import ConfigError, first_line, rejecting
from vit_plugin.inference.load import load
from vit_plugin.inference.saved_model import find_checkpoint
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.loading.loadable import check_finite, overflow_remedy
from vit_plugin.untrusted.table import PREDICT
from vit_plugin.weights.carried_records import address_record
from vit_plugin.weights.hub import CARD, ENTRY, HUB_CONFIG, HUB_WEIGHTS
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.provenance import PROVENANCE_KEY, Provenance, converted_record

from .card import Card
from .libraries import LIBRARIES, Library, tolerance_of, with_crop
from .preprocessing import processor_of, timm_data_config
from .run_files import check_not_linked
from .written_task import difference, written_task

HUB = 'hf://'
OWN_FORMAT = 'vit_plugin'  # the format for models that no other library has
PROCESSOR = 'preprocessor_config.json'
HALF_DTYPES = ('float16', 'bfloat16')
PUBLISHED_METADATA = ('classes', 'palette')  # metadata of the data set that may be published


def publish(
    source: str,
    target: str,
    hub_format: str | None = None,
    dtype: str | None = None,
    license: str | None = None,
    private: bool = False,
    which: str | None = None,
) -> str:
    """Write a run's model as a folder of the hub, or upload it.

    Args:
        source: a checkpoint, or the folder of a run.
        target: a folder that does not exist or is empty, or ``hf://USER/NAME``.
        hub_format: ``'timm'``, which transformers with timm installed also reads, ``'hf'`` for
            transformers, or ``'vit_plugin'``. Default: the first that supports the model.
        dtype: dtype of the weights. Default: that of the source.
        license: the hub's name of the license. Default: that of the checkpoint.
        private: whether an upload is private.
        which: the checkpoint of a run's folder, see
            :func:`~vit_plugin.inference.saved_model.find_checkpoint`.

    Returns:
        A sentence about what was written, and which libraries read it.

    Raises:
        ConfigError: if the source holds no config, if the library does not support the model, if
            the target is not a new or empty folder, if a file of the run is a link or not what its
            name says, or if the hub refuses.
    """
    if hub_format not in (None, OWN_FORMAT, *LIBRARIES):
        raise ConfigError(
            f'--to {hub_format}: a folder of the hub is read by '
            f'{", ".join((*LIBRARIES, OWN_FORMAT))}; give one of them, or a file as the target.'
        )
    if target.startswith(HUB):
        name = target.removeprefix(HUB)
        if not all(part.strip('.') for part in name.split('/')):
            raise ConfigError(f'{target!r} names no model; give {HUB}USER/NAME.')
    else:
        name = f'USER/{os.path.basename(os.path.abspath(target))}'  # also for '.'
        _check_empty(Path(target))
    path = find_checkpoint(source, which)
    check_not_linked(source, path)
    trained = load(path, device='cpu', classify=None)
    if 'model' not in trained.cfg:
        raise ConfigError(f'{source!r} holds no config of a model; give the checkpoint of a run.')
    dtype = dtype or _half_dtype(path)
    with _upload_folder(name) if target.startswith(HUB) else new_folder(target) as folder:
        record = converted_record(address_record(path), name, license or '')
        written = _write(trained, folder, hub_format, dtype, record)
        card = Card(trained, path, name, written.library, written.difference, license, record)
        (folder / CARD).write_text(card.text(), encoding='utf-8')
        for picture, content in card.pictures.items():
            (folder / picture).write_bytes(content)
        if target.startswith(HUB):
            upload(folder, name, private)
            return f'https://huggingface.co/{name}: {written}'
    return f'{target}: {written}'


@contextmanager
def _upload_folder(name: str) -> Iterator[Path]:
    """A temporary folder with the name of the model, as a card shows it."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary, os.path.basename(name))
        folder.mkdir()
        yield folder


def _check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f'{str(folder)!r} is there already; remove it, or give another name.')
    check_target(folder / HUB_CONFIG)


def _half_dtype(path: str) -> str | None:
    """The dtype of a checkpoint in half precision, which a model loads in float32; else None."""
    weights = open_checkpoint(path).weights.values()
    dtypes = {value.dtype for value in weights if value.is_floating_point()}
    for name in HALF_DTYPES:
        if dtypes == {getattr(torch, name)}:
            return name
    return None


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


def _write(
    trained: TrainedModel,
    folder: Path,
    hub_format: str | None,
    dtype: str | None,
    record: Provenance,
) -> WrittenFolder:
    """Write weights and configs into a folder, with the provenance record of the weights.

    They are for the first library that supports the model, or else for this package alone.
    """
    written, reasons = None, []
    for name in [hub_format] if hub_format else LIBRARIES:
        try:
            written = _write_for_library(trained, folder, name, dtype, record)
            break
        except ConfigError as error:
            if hub_format in LIBRARIES:
                reason = first_line(error).rstrip('.')
                raise ConfigError(f'--to {hub_format}: {reason}; leave --to out.') from error
            reasons.append(first_line(error).rstrip('.'))
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
    if hub_format == OWN_FORMAT:
        # _write reports it as the reason why no other library reads the folder.
        raise ConfigError('--to vit_plugin asks for its own names')
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


def upload(folder: Path, name: str, private: bool = False) -> None:
    """Upload a folder as a model of the hub, which is created if needed.

    Raises:
        ConfigError: if the hub refuses or cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name='vit_plugin', library_version=__version__)
    with rejecting(  # any error: those of the hub, of the network and of huggingface_hub
        f'{HUB}{name} cannot be written',
        'log in with hf auth login, or set HF_TOKEN to a token that may write there, and check the '
        'name and the network',
    ):
        api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name, folder_path=folder, commit_message=f'vit_plugin {__version__}'
        )
