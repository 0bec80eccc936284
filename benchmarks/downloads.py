"""Try downloads of weights from a server that stalls, lies, truncates and loops.

    python benchmarks downloads

Each case (``download_cases.py``) must succeed or end in an error of one sentence, as the case
expects, and leave no partial file. The server is ``rude_server.py``. Takes a quarter of a minute.
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
from vit_plugin.weights import downloads, http_transfer, open_checkpoint
from vit_plugin.weights.downloads import cached_path

HANG_SECONDS = 20  # a case that takes longer is taken to hang
# Outcomes of a case. 'lost' is another outcome than the case expects, or a wrong file.
OUTCOMES = ('right', 'one sentence', 'traceback', 'hang', 'lost')


def attempt(case: Case, folder: Path) -> tuple[str, str]:
    """Try a case with a cache in this folder. Returns one of :data:`OUTCOMES`, and its message."""
    results: list[tuple[str, str]] = []
    with (
        serving(content()) as server,
        patch.object(torch.hub, 'get_dir', lambda: str(folder)),
        patch.multiple(http_transfer, MIN_SPEED=10**5, RETRIES=2, RETRY_PAUSE=0.01),
        patch.object(downloads, 'LOCK_TIMEOUT', 3),
        patch.dict(os.environ, NO_PROXY='*', VIT_PLUGIN_DOWNLOAD_SECONDS=str(case.timeout)),
    ):
        url = case.path.replace('SERVER', server.address.removeprefix('http://'))
        url = url if '://' in case.path else f'{server.address}/{url}'
        thread = threading.Thread(
            target=lambda: results.append(outcome(case, server, url)), daemon=True
        )
        thread.start()
        thread.join(HANG_SECONDS)
    return results[0] if results else ('hang', f'after {HANG_SECONDS} s')


def outcome(case: Case, server: Server, url: str) -> tuple[str, str]:
    """Download, and compare with what the case expects."""
    try:
        with case.around(server, url) if case.around else open(os.devnull):
            weights = open_checkpoint(url).weights
            right = np.array_equal(weights['weight'].numpy(), WEIGHTS['weight'])
        end = ('right', '') if right else ('lost', 'other weights')
    except ConfigError as error:
        end = ('one sentence', str(error))
    except Exception:
        return 'traceback', traceback.format_exc()
    if (end[0] == 'right') != (case.message is None) or not re.search(case.message or '', end[1]):
        return 'lost', f'other than expected: {end}'
    if end[0] == 'one sentence' and (not end[1].endswith('.') or '\n' in end[1]):
        return 'lost', f'not one sentence: {end[1]}'
    if case.num_requests is not None and len(server.requests) != case.num_requests:
        return 'lost', f'{len(server.requests)} requests: {server.requests}; {end}'
    return check_cache(case, url, end)


def check_cache(case: Case, url: str, end: tuple[str, str]) -> tuple[str, str]:
    """The outcome ``end``, or 'lost' if the cache has unexpected files or lacks expected ones."""
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
    counts, all_cases = Counter(), cases()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(all_cases):
            column, message = attempt(case, Path(folder, str(i)))
            counts[column] += 1
            print(f'{column:13} {case}: {message}'.encode(errors='backslashreplace').decode())
    print(
        f'downloads: tried {len(all_cases)}, '
        + ', '.join(f'{column} {counts[column]}' for column in OUTCOMES)
        + f', in {time.monotonic() - began:.0f} s'
    )
    return int(counts['traceback'] + counts['hang'] + counts['lost'] > 0)


if __name__ == '__main__':
    sys.exit(main())
