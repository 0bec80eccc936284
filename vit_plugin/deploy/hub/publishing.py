"""Write a trained model as a folder for Hugging Face's hub (a hub folder), and upload it.

The weights and configs in it are written by :mod:`~vit_plugin.deploy.hub.written_folder`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from anyfolder.complete import check_target, new_folder
from vit_plugin import __version__
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.inference.load import load
from vit_plugin.inference.saved_model import find_checkpoint
from vit_plugin.weights.carried_records import address_record
from vit_plugin.weights.hub_files import CARD, HUB_CONFIG
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.provenance import converted_record

from .card import Card
from .libraries import LIBRARIES
from .run_files import check_not_linked
from .written_folder import OWN_FORMAT, write_model_folder

HUB = 'hf://'
HALF_DTYPES = ('float16', 'bfloat16')


def publish(
    source: str,
    target: str,
    hub_format: str | None = None,
    dtype: str | None = None,
    license: str | None = None,
    private: bool = False,
    which: str | None = None,
) -> str:
    """Write a run's model as a hub folder, or upload it.

    Args:
        source: a checkpoint, or the folder of a run.
        target: a folder that does not exist or is empty, or ``hf://USER/NAME``.
        hub_format: ``'timm'``, which transformers with timm installed also reads, ``'hf'`` for
            transformers, or ``'vit_plugin'``. Default: the first that supports the model.
        dtype: dtype of the weights. Default: that of the source.
        license: the hub's name of the license. Default: that of the checkpoint.
        private: whether an upload is private.
        which: which checkpoint of a run's folder to take, see
            :func:`~vit_plugin.inference.saved_model.find_checkpoint`.

    Returns:
        A sentence about what was written, and which libraries read it.

    Raises:
        ConfigError: if the source holds no config, if the library does not support the model, if
            the target is not a new or empty folder, if a file of the run is a symbolic link or its
            content does not match its suffix, or if the hub refuses.
    """
    if hub_format not in (None, OWN_FORMAT, *LIBRARIES):
        raise ConfigError(
            f'--to {hub_format}: a hub folder is written for '
            f'{", ".join((*LIBRARIES, OWN_FORMAT))}; give one of them, or the name of a file as '
            'the target.'
        )
    if target.startswith(HUB):
        name = target.removeprefix(HUB)
        parts = name.split('/')
        if len(parts) != 2 or not all(part.strip('.') for part in parts):
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
        written = write_model_folder(trained, folder, hub_format, dtype, record)
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
    """A temporary folder with the name of the model, which the card shows."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary, os.path.basename(name))
        folder.mkdir()
        yield folder


def _check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f'{str(folder)!r} exists and is not empty; remove it, or give another name.'
        )
    check_target(folder / HUB_CONFIG)  # before the model is loaded


def _half_dtype(path: str) -> str | None:
    """The dtype of a checkpoint whose weights are all in half precision; None for others.

    A model loads it in float32, and the written folder gets this dtype again.
    """
    weights = open_checkpoint(path).weights.values()
    dtypes = {value.dtype for value in weights if value.is_floating_point()}
    for name in HALF_DTYPES:
        if dtypes == {getattr(torch, name)}:
            return name
    return None


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
