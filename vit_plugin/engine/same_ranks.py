"""Check that all processes of a run have the same config, data and checkpoint.

What is compared are *facts*: a name and a text, such as ``train_dataloader.batch_size`` and ``16``.
Checking early gives a clear error where the run would hang or silently train on mixed data.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
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

# Settings that may differ between ranks, since they do not change what is trained.
RANK_SPECIFIC_SETTINGS = ('work_dir', 'data_root', 'experiment_name', 'log_level', 'num_workers')
HASHED_BYTES = 1 << 16  # at either end of a file
MAX_SAMPLES = 10_000  # compared samples of a data set
MAX_VALUES = 3  # different values that a message shows
# Names of facts about a data set; the name of its loader follows.
CLASSES_FACT = 'the classes of '
SAMPLE_COUNT_FACT = 'the number of samples of '
CONTENT_FACT = 'the files and labels of '
BYTES_FACT = 'the bytes of the images of '
SHOWN_CHARACTERS = 100  # characters of a value that a message shows


def check_same(
    facts: Mapping[str, str],
    remedy: str = 'start all with one config and the same data. Only '
    f'{", ".join(RANK_SPECIFIC_SETTINGS)} may differ',
) -> None:
    """Compare facts of all ranks by name. Every rank calls this.

    Args:
        facts: name -> value.
        remedy: what the user should do, the last part of the error's sentence.

    Raises:
        ConfigError: in all ranks, at the first fact that differs, with the ranks.
    """
    if get_world_size() == 1:
        return
    # Usually all are equal, so the ranks first exchange only a digest.
    if len(set(all_gather_object(_digest(repr(sorted(facts.items())))))) == 1:
        return
    facts_by_rank = all_gather_object(dict(facts))
    for name in dict.fromkeys(name for facts_of_rank in facts_by_rank for name in facts_of_rank):
        ranks_by_value: dict[str, list[str]] = {}
        for rank, facts_of_rank in enumerate(facts_by_rank):
            ranks_by_value.setdefault(facts_of_rank.get(name, 'nothing'), []).append(str(rank))
        if len(ranks_by_value) > 1:
            parts = zip(_shown_parts([*ranks_by_value]), ranks_by_value.values(), strict=True)
            values = [f'{part} (rank {shortened_list(ranks)})' for part, ranks in parts]
            shown = ' or '.join(values[:MAX_VALUES])
            raise ConfigError(f'The processes of this run differ in {name}: {shown}; {remedy}.')


def _shown_parts(values: Sequence[str]) -> list[str]:
    """What a message shows of each value: its beginning, or where they first differ."""
    characters = enumerate(zip(*values, strict=False))
    shortest = min(map(len, values))
    first = next((i for i, different in characters if len({*different}) > 1), shortest)
    begin = first - SHOWN_CHARACTERS // 2
    if begin <= 0:
        return [value[:SHOWN_CHARACTERS] for value in values]
    return [f'...{value[begin : begin + SHOWN_CHARACTERS]}' for value in values]


def collect_config_facts(cfg: Mapping[str, Any]) -> dict[str, str]:
    """The values of a config by dotted name, except those that may differ between ranks."""
    return dict(_flatten(cfg, ()))


def collect_data_facts(dataset: Any, name: str) -> dict[str, str]:
    """The number of samples, the classes, and a digest of the files and labels below the root.

    The digest covers at most :data:`MAX_SAMPLES` evenly spaced samples. A data set without
    MMEngine's ``get_data_info`` has no digest.
    """
    facts = {f'{CLASSES_FACT}{name}': repr(classes_of(dataset))}
    if hasattr(dataset, '__len__'):
        facts[f'{SAMPLE_COUNT_FACT}{name}'] = str(len(dataset))
    if hasattr(dataset, 'get_data_info'):
        infos = map(dataset.get_data_info, evenly_spaced(len(dataset), MAX_SAMPLES))
        text = '\n'.join(_without_addresses(repr(sorted(info.items()))) for info in infos)
        if root := str(getattr(dataset, 'data_root', None) or ''):
            # Remove the root where a path starts, which is after the quote of a `repr`. Names and
            # keys may contain its name, too.
            end = '' if root.endswith(('/', '\\')) else r'(?=[/\\\'"])'
            text = re.sub(rf'(?<=[\'"]){re.escape(repr(root)[1:-1])}{end}', '', text)
        facts[f'{CONTENT_FACT}{name}'] = _digest(text)
    return facts


def collect_content_facts(dataset: Any, name: str) -> dict[str, str]:
    """A digest of the files' bytes, see :func:`~vit_plugin.data.content.content_digest`.

    It is saved in checkpoints, and compared when a run is resumed. All ranks call this, but only
    rank 0 reads: hashing every rank's copy would multiply the cost.
    """
    digest = from_rank_0(partial(content_digest, dataset))
    return {f'{BYTES_FACT}{name}': digest} if digest else {}


def collect_checkpoint_facts(path: str) -> dict[str, str]:
    """The size of a checkpoint and a digest of its ends, or of a folder's manifest.

    The manifest has names and checksums of the content. A URL has no facts.
    """
    if '://' in path:
        return {}
    file = Path(path, MANIFEST) if is_checkpoint_folder(path) else Path(path)
    try:
        with open(file, 'rb') as stream:
            head, size = stream.read(HASHED_BYTES), file.stat().st_size
            stream.seek(max(size - HASHED_BYTES, 0))
            digest = blake2b(head + stream.read(), digest_size=8).hexdigest()
        fact = f'{size} bytes, {digest}'
    except OSError as error:
        fact = error.strerror or 'nothing'
    return {f'the checkpoint {path!r}': fact}


def _flatten(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The dotted name and the text of each plain value below a path of the config."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            if name not in RANK_SPECIFIC_SETTINGS:
                yield from _flatten(item, (*path, str(name)))
    elif isinstance(value, (list, tuple)) and value:
        for i, item in enumerate(value):
            yield from _flatten(item, (*path, str(i)))
    else:
        yield '.'.join(path), _without_addresses(repr(value))


def _without_addresses(text: str) -> str:
    """Remove the memory addresses in the text of some objects."""
    return re.sub(r' at 0x[0-9a-f]+', '', text)


def _digest(text: str) -> str:
    return blake2b(text.encode(errors='surrogateescape'), digest_size=8).hexdigest()
