"""Downloads of weights from servers that stall, lie, truncate and loop: the outcome of each.

    python benchmarks downloads

Takes a quarter of a minute. Each case must succeed or end in one sentence; no traceback, no hang,
no lost file.
"""

import os
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.download_cases import WEIGHTS, Case, cases, content
from benchmarks.rude_server import Server, serving
from vit_plugin.errors import ConfigError
from vit_plugin.weights import downloads, open_checkpoint
from vit_plugin.weights.downloads import cached_path

LONGEST = 20  # seconds after which a case is taken to hang
COLUMNS = ('right', 'one sentence', 'traceback', 'hang', 'lost')


def attempt(case: Case, folder: Path) -> tuple[str, str]:
    """The column of the table for a case, and its message."""
    outcomes: list[tuple[str, str]] = []
    with (
        serving(content()) as server,
        patch.object(torch.hub, 'get_dir', lambda: str(folder)),
        patch.multiple(downloads, MIN_SPEED=10**5, RETRIES=2, RETRY_PAUSE=0.01, LOCK_TIMEOUT=3),
        patch.dict(os.environ, NO_PROXY='*', VIT_PLUGIN_DOWNLOAD_SECONDS=str(case.timeout)),
    ):
        url = case.path.replace('SERVER', server.address.removeprefix('http://'))
        url = url if '://' in case.path else f'{server.address}/{url}'
        thread = threading.Thread(
            target=lambda: outcomes.append(outcome(case, server, url)), daemon=True
        )
        thread.start()
        thread.join(LONGEST)
    return outcomes[0] if outcomes else ('hang', f'after {LONGEST} s')


def outcome(case: Case, server: Server, url: str) -> tuple[str, str]:
    try:
        with case.around(server, url) if case.around else open(os.devnull):
            weights = open_checkpoint(url).weights
            right = np.array_equal(weights['weight'].numpy(), WEIGHTS['weight'])
        end = ('right', '') if right else ('lost', 'other weights')
    except ConfigError as error:
        end = ('one sentence', str(error))
    except Exception:
        return 'traceback', traceback.format_exc()
    if (end[0] == 'right') != (case.says is None) or not re.search(case.says or '', end[1]):
        return 'lost', f'other than expected: {end}'
    if end[0] == 'one sentence' and (not end[1].endswith('.') or '\n' in end[1]):
        return 'lost', f'not one sentence: {end[1]}'
    if case.asked is not None and len(server.asked) != case.asked:
        return 'lost', f'{len(server.asked)} requests: {server.asked}; {end}'
    return left_over(case, url, end)


def left_over(case: Case, url: str, end: tuple[str, str]) -> tuple[str, str]:
    """The outcome, unless the cache has unexpected files or lacks expected ones."""
    cache = Path(torch.hub.get_dir(), 'checkpoints')
    found = cache.rglob('*') if cache.is_dir() else ()
    files = [path.name for path in found if path.is_file() and path.suffix != '.lock']
    parts = [name for name in files if '.part' in name]
    if end[0] == 'right' and (len(files) != 1 or cached_path(url).name != files[0]):
        return 'lost', f'{files} in the cache'
    if end[0] == 'one sentence' and (parts or is_cached(url)):
        return 'lost', f'{files} in the cache'
    return end


def is_cached(url: str) -> bool:
    try:
        return cached_path(url).exists()
    except ValueError:  # not an address
        return False


def main() -> int:
    counts, rows = Counter(), cases()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(rows):
            column, said = attempt(case, Path(folder, str(i)))
            counts[column] += 1
            print(f'{column:13} {case}: {said}'.encode(errors='backslashreplace').decode())
    print(
        f'downloads: tried {len(rows)}, '
        + ', '.join(f'{column} {counts[column]}' for column in COLUMNS)
        + f', in {time.monotonic() - began:.0f} s'
    )
    return int(counts['traceback'] + counts['hang'] + counts['lost'] > 0)


if __name__ == '__main__':
    sys.exit(main())
