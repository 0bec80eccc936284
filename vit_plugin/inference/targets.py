"""Choose the path of each input's picture or video in the folder of ``--out``."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from anyfolder.complete import check_target
from vit_plugin.errors import ConfigError

from .inputs import Input, url_path

JPEG = '.jpg', '.jpeg'  # a photograph is several times larger as .png


def choose_targets(inputs: Sequence[Input], folder: Path) -> dict[Input, Path]:
    """The picture or video to write below a folder for each input.

    A JPEG becomes .jpg, any other image .png, and a video .mp4.

    A target has the name of its input, and its path relative to the folder that was given. If two
    targets would be the same file, they keep their old suffix before the new one (a.bmp.png,
    a.png). If that is not enough, paths are relative to the common parent of all folders that were
    given, and those of URLs begin with their host.

    Raises:
        ConfigError: if two targets would still be the same file, or if a target is an input or
            cannot be written.
    """
    targets: dict[Input, Path] = {}
    # Shorter paths first; each rule names the inputs that the previous one left ambiguous.
    for path_of in (_by_stem, _by_name, _by_path(inputs)):
        remaining = [source for source in inputs if source not in targets]
        candidates = {source: folder / path_of(source) for source in remaining}
        counts = Counter([*targets.values(), *candidates.values()])
        targets |= {source: path for source, path in candidates.items() if counts[path] == 1}
    same = [source.name for source in inputs if source not in targets]
    if same:
        raise ConfigError(
            f'--out: {" and ".join(map(repr, same[:2]))} would be the same file in '
            f'{str(folder)!r}; draw them into two folders.'
        )
    check_no_input_overwritten(targets.values(), inputs)
    for target in targets.values():
        check_target(target)
    return targets


def _by_stem(source: Input) -> Path:
    return source.relative_path.with_suffix(_suffix(source))


def _by_name(source: Input) -> Path:
    name, suffix = source.relative_path.name, _suffix(source)
    return source.relative_path.with_name(name if name.endswith(suffix) else name + suffix)


def _by_path(inputs: Sequence[Input]) -> Callable[[Input], Path]:
    """A function from an input to its path below the common parent of all roots.

    The path of a URL begins with its host.
    """
    # The root of a webcam is the working directory.
    folders = [os.path.abspath(source.root) for source in inputs if source.reader != 'url']
    common_parent = os.path.commonpath(folders) if folders else '/'

    def path_of(source: Input) -> Path:
        if source.reader == 'url':
            path, host = Path(url_path(source.name)), urlsplit(source.name).netloc.strip('.')
            # The first part of a path that begins with two slashes is both of them.
            parts = [part for part in path.parts if part.strip('/') not in ('', '.', '..')]
            return Path(host.replace(':', '_'), *parts[:-1], _by_name(source))
        return Path(os.path.relpath(os.path.abspath(source.root), common_parent), _by_name(source))

    return path_of


def _suffix(source: Input) -> str:
    if source.is_video:
        return '.mp4'
    return '.jpg' if source.relative_path.suffix.lower() in JPEG else '.png'


def bases_of(targets: Iterable[Path]) -> dict[Path, Path]:
    """The path without a suffix for more files of each target.

    Targets of one folder that differ only in their suffix, such as a.jpg and a.png, keep it.
    """
    bases = {target: target.with_suffix('') for target in targets}
    counts = Counter(bases.values())
    return {target: base if counts[base] == 1 else target for target, base in bases.items()}


def without_earlier_outputs(inputs: Sequence[Input], folders: Iterable[Path]) -> list[Input]:
    """The inputs without those in an output folder that lies below an input folder.

    They are pictures of an earlier run. Their number is printed.
    """
    output_folders = {folder.resolve() for folder in folders}

    def is_earlier_output(source: Input) -> bool:
        root = source.root.resolve()
        below_root = set(Path(source.name).resolve().parents) - {root, *root.parents}
        return source.reader in ('image', 'video') and bool(below_root & output_folders)

    kept = [source for source in inputs if not is_earlier_output(source)]
    if count := len(inputs) - len(kept):
        print(f'{count} left out, since they are in a folder of --out.', file=sys.stderr)
    return kept


def check_no_input_overwritten(targets: Iterable[Path], inputs: Sequence[Input]) -> None:
    """Raise a ``ConfigError`` if a file to write is also an input."""
    check_not_read(targets, files_read(inputs))


def files_read(inputs: Sequence[Input]) -> set[Path]:
    """The resolved paths of the inputs that are files."""
    return {Path(source.name).resolve() for source in inputs if source.reader in ('image', 'video')}


def check_not_read(targets: Iterable[Path], read: Collection[Path]) -> None:
    """Raise a ``ConfigError`` if a file to write is among these resolved paths."""
    if overwritten := next((path for path in targets if path.resolve() in read), None):
        raise ConfigError(
            f'--out: {str(overwritten)!r} would be overwritten while it is read; give another '
            'folder.'
        )
