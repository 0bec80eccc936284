"""Check that all processes of a run have the same config, data and checkpoint."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mmengine.dist import all_gather_object, get_world_size

from anyfolder.sampling import evenly_spaced
from vit_plugin.data.content import content_digest
from vit_plugin.data.dataset_facts import classes_of
from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.folders import MANIFEST, is_checkpoint_folder
from vit_plugin.weights.report import shortened_list

from .distributed import from_rank_0

# Ranks may differ in paths, and in settings that only affect speed.
RANK_OWN = ('work_dir', 'data_root', 'experiment_name', 'log_level', 'num_workers')
END = 1 << 16  # bytes at either end of a file
SAMPLES = 10_000  # number of samples that are compared
# Facts about a data set, before the name of its loader.
CLASS_NAMES, NUMBER, CONTENT, BYTES = (
    'the classes of ',
    'the number of samples of ',
    'the files and labels of ',
    'the bytes of the images of ',
)
SHOWN_CHARACTERS = 100  # characters of a value that are shown


def check_same(
    facts: Mapping[str, str],
    remedy: str = 'start all with one config and the same data. Only '
    f'{", ".join(RANK_OWN)} may differ',
) -> None:
    """Compare facts of all ranks by name. Every rank calls this.

    Raises:
        ConfigError: in all ranks, at the first fact that differs, with the ranks.
    """
    if get_world_size() == 1:
        return
    if len(set(all_gather_object(_digest(repr(sorted(facts.items())))))) == 1:
        return
    known = all_gather_object(dict(facts))
    for name in dict.fromkeys(name for facts_of_rank in known for name in facts_of_rank):
        ranks: dict[str, list[str]] = {}
        for rank, facts_of_rank in enumerate(known):
            ranks.setdefault(facts_of_rank.get(name, 'nothing'), []).append(str(rank))
        if len(ranks) > 1:
            values = [
                f'{value[:SHOWN_CHARACTERS]} (rank {shortened_list(of_ranks)})'
                for value, of_ranks in ranks.items()
            ]
            raise ConfigError(
                f'The processes of this run differ in {name}: {" or ".join(values[:3])}; {remedy}.'
            )


def collect_config_facts(cfg: Mapping[str, Any]) -> dict[str, str]:
    """The values of a config by dotted name, except those that may differ between ranks."""
    return dict(_flat(cfg, ()))


def collect_data_facts(dataset: Any, name: str) -> dict[str, str]:
    """The number of samples, the classes, and a digest of the files and labels below the root.

    The digest covers at most 10,000 evenly spaced samples. Without MMEngine's ``get_data_info``
    there is none.
    """
    facts = {f'{CLASS_NAMES}{name}': repr(classes_of(dataset))}
    if hasattr(dataset, '__len__'):
        facts[f'{NUMBER}{name}'] = str(len(dataset))
    if hasattr(dataset, 'get_data_info'):
        infos = map(dataset.get_data_info, evenly_spaced(len(dataset), SAMPLES))
        text = '\n'.join(_stable(repr(sorted(info.items()))) for info in infos)
        root = str(getattr(dataset, 'data_root', None) or '')
        facts[f'{CONTENT}{name}'] = _digest(text.replace(root, '') if root else text)
    return facts


def collect_content_facts(dataset: Any, name: str) -> dict[str, str]:
    """A digest of the files' bytes, see :func:`~vit_plugin.data.content.content_digest`.

    All ranks call this, but only rank 0 reads: hashing every rank's copy would multiply the cost.
    """
    digest = from_rank_0(partial(content_digest, dataset))
    return {f'{BYTES}{name}': digest} if digest else {}


def collect_checkpoint_facts(path: str) -> dict[str, str]:
    """The size of a checkpoint and a digest of its ends, or of a folder's manifest.

    The manifest has names and checksums of the content. A URL has no facts.
    """
    if '://' in path:
        return {}
    file = Path(path, MANIFEST) if is_checkpoint_folder(path) else Path(path)
    try:
        with open(file, 'rb') as stream:
            ends, size = stream.read(END), file.stat().st_size
            stream.seek(max(size - END, 0))
            digest = blake2b(ends + stream.read(), digest_size=8).hexdigest()
        fact = f'{size} bytes, {digest}'
    except OSError as error:
        fact = error.strerror or 'nothing'
    return {f'the checkpoint {path!r}': fact}


def _flat(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            if name not in RANK_OWN:
                yield from _flat(item, (*place, str(name)))
    elif isinstance(value, (list, tuple)) and value:
        for i, item in enumerate(value):
            yield from _flat(item, (*place, str(i)))
    else:
        yield '.'.join(place), _stable(repr(value))


def _stable(text: str) -> str:
    """Remove the memory addresses in the text of some objects."""
    return re.sub(r' at 0x[0-9a-f]+', '', text)


def _digest(text: str) -> str:
    return blake2b(text.encode(errors='surrogateescape'), digest_size=8).hexdigest()
