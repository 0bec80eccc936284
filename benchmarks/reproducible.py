"""Build the wheel and the source distribution from two copies of the tree, and compare the bytes.

    python benchmarks reproducible                       # builds both: a minute
    python benchmarks reproducible --against dist        # builds once, for the release

The copies have different paths, file times and umasks. Both take SOURCE_DATE_EPOCH from the
environment, or else the time of the last commit. It prints the SHA-256 of each file, and ends with
status 1 if one differs. With ``--against``, the second build is compared with files of an earlier
one. ``--no-isolation`` builds with the setuptools of this environment, without the network.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.matrix import ROOT, copy_tree

OTHER_TIME = 1_000_000_000  # modification time of all files of the second copy, in seconds
UMASKS = (0o022, 0o077)  # of the two builds


def epoch() -> str:
    """Seconds for SOURCE_DATE_EPOCH."""
    last = ['git', 'log', '-1', '--format=%ct']
    return (
        os.environ.get('SOURCE_DATE_EPOCH')
        or subprocess.check_output(last, cwd=ROOT, text=True).strip()
    )


def build(folder: Path, umask: int, options: Sequence[str] = ()) -> dict[str, str]:
    """Build in a copy of the tree.

    Args:
        folder: an empty folder for the copy and the built files.
        umask: the umask of the build.
        options: options of ``python -m build``.

    Returns:
        The SHA-256 of each file by its name.
    """
    copy_tree(folder / 'tree')
    if umask != UMASKS[0]:  # the second copy
        for path in (folder / 'tree').rglob('*'):
            os.utime(path, (OTHER_TIME, OTHER_TIME))
    command = [sys.executable, '-m', 'build', '--outdir', str(folder / 'dist'), *options]
    done = subprocess.run(
        command,
        cwd=folder / 'tree',
        env={**os.environ, 'SOURCE_DATE_EPOCH': epoch()},
        umask=umask,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f'{done.stdout[-4000:]}\n{done.stderr[-4000:]}')
    return hashes(folder / 'dist')


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each wheel and archive of a folder."""
    files = sorted([*folder.glob('*.whl'), *folder.glob('*.tar.gz')])
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def run(against: Path | None = None, options: Sequence[str] = ()) -> int:
    """Compare two builds. Returns 1 if a file differs or is missing."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        before = hashes(against) if against else build(Path(first), UMASKS[0], options)
        after = build(Path(second), UMASKS[1], options)
    for name in sorted({*before, *after}):
        same = before.get(name) == after.get(name)
        print(f'{name}: {after.get(name)} {"the same twice" if same else "DIFFERS"}')
    return int(before != after or len(after) != 2)  # a wheel and an archive


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--against', type=Path, help='a folder with files of an earlier build')
    parser.add_argument('--no-isolation', action='store_true', help='build without the network')
    args = parser.parse_args()
    sys.exit(run(args.against, ['--no-isolation'] if args.no_isolation else []))
