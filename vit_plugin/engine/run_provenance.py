"""The provenance of a run's weights, which each of its checkpoints keeps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.weights.carried_records import address_record
from vit_plugin.weights.hub_files import weights_in
from vit_plugin.weights.provenance import Provenance, initial_weights, made_of
from vit_plugin.weights.reading.folders import is_checkpoint_folder

from .checkpoints.chosen import choose_checkpoint

A_RUN = 'a training'  # source of the weights until a file has them and gives its name


def collect_provenance(cfg: Mapping[str, Any]) -> Provenance:
    """The provenance of a run: its initial weights, its teacher, and the license of its data.

    Args:
        cfg: the config. The user states the license in its ``data_license``.
    """
    # Pairs of what the run used it for ('start', 'teacher' or 'data'), and its own record.
    links = [
        (role, address_record(_resolve_file(source)))
        for role, source in dict.fromkeys(initial_weights(cfg))
    ]
    if license := cfg.get('data_license'):
        links.append(('data', Provenance('the training data', str(license), 'the config')))
    is_distilled = any(role == 'teacher' for role, _ in links)
    return made_of('distilled' if is_distilled else 'trained', A_RUN, links)


def _resolve_file(source: str) -> str:
    """The checkpoint to use if the source is the folder of a run, otherwise the source itself."""
    folder = Path(source)
    if folder.is_dir() and not weights_in(folder) and not is_checkpoint_folder(folder):
        try:
            return choose_checkpoint(folder)[0]
        except ConfigError:  # the code that loads it reports the error
            return source
    return source
