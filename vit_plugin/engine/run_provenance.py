"""What a run says of where its weights come from, which each of its checkpoints keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.weights.carried_records import of_address
from vit_plugin.weights.hub import weights_in
from vit_plugin.weights.provenance import Provenance, begun_with, made_of
from vit_plugin.weights.reading.folders import is_checkpoint_folder

from .checkpoints.chosen import checkpoint_in

A_RUN = 'a training'  # until it has a file, whose name takes the place of this


def record_of_run(cfg: Mapping[str, Any]) -> Provenance:
    """The record of a run: what its config begins with, its teacher, and the license of its data.

    Args:
        cfg: the config. ``data_license`` is what a person knows of the data.
    """
    links = [
        (part, of_address(_file_of(source))) for part, source in dict.fromkeys(begun_with(cfg))
    ]
    if license := cfg.get('data_license'):
        links.append(('data', Provenance('the training data', str(license), 'the config')))
    is_distilled = any(part == 'teacher' for part, _ in links)
    return made_of('distilled' if is_distilled else 'trained', A_RUN, links)


def _file_of(source: str) -> str:
    """The checkpoint in the folder of a run; anything else as it is."""
    folder = Path(source)
    if folder.is_dir() and not weights_in(folder) and not is_checkpoint_folder(folder):
        try:
            return checkpoint_in(folder)[0]
        except ConfigError:  # whoever needs it reports it
            return source
    return source
