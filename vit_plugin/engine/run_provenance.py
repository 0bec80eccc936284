"""The provenance of a run's weights, which each of its checkpoints keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.weights.carried_records import address_record
from vit_plugin.weights.hub import weights_in
from vit_plugin.weights.provenance import Provenance, initial_weights, made_of
from vit_plugin.weights.reading.folders import is_checkpoint_folder

from .checkpoints.chosen import choose_checkpoint

A_RUN = 'a training'  # replaced by the file name once there is a file


def collect_provenance(cfg: Mapping[str, Any]) -> Provenance:
    """The provenance of a run: its initial weights, its teacher, and the license of its data.

    Args:
        cfg: the config. The user states the license in its ``data_license``.
    """
    links = [
        (part, address_record(_resolve_file(source)))
        for part, source in dict.fromkeys(initial_weights(cfg))
    ]
    if license := cfg.get('data_license'):
        links.append(('data', Provenance('the training data', str(license), 'the config')))
    is_distilled = any(part == 'teacher' for part, _ in links)
    return made_of('distilled' if is_distilled else 'trained', A_RUN, links)


def _resolve_file(source: str) -> str:
    """The checkpoint in the folder of a run. Any other source is returned unchanged."""
    folder = Path(source)
    if folder.is_dir() and not weights_in(folder) and not is_checkpoint_folder(folder):
        try:
            return choose_checkpoint(folder)[0]
        except ConfigError:  # the code that loads it reports the error
            return source
    return source
