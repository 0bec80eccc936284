"""Write files completely or not at all."""

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from uuid import uuid4

from anyfolder.errors import InputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

ADDRESS = re.compile(r'\w[\w+]+:/')  # a single letter is a drive in Windows
PROBE_BYTES = bytes(1 << 20)  # written to find out whether a disk is full


@contextmanager
def replacing(target: str | Path, sources: Iterable[str | Path] = ()) -> Iterator[Path]:
    """Yield a path to write, next to the target, which it replaces if the block raises no error.

        with replacing('weights.npz', [args.source]) as path:
            np.savez(path, **arrays)

    Until then, and after any error, the target is unchanged. No temporary file remains. Missing
    folders are created.

    Args:
        target: the file to write. The path for the block has the same suffix.
        sources: files that the block reads or that are mapped into memory. The target must not be
            one of them.

    Raises:
        InputError: if the target is one of the sources, or if it cannot be written, for example on
            a full disk.
    """
    target = Path(target)
    check_target(target, sources)
    real = Path(os.path.realpath(target))  # a link remains a link
    temporary = real.with_name(f'.{real.stem[:100]}.{uuid4().hex[:8]}{real.suffix}')
    try:
        with _explain_disk_errors(target, temporary):
            real.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch()
            mode = (real if real.exists() else temporary).stat().st_mode
            temporary.unlink()  # a block that writes nothing is an error
            yield temporary
            _sync(temporary)
            temporary.chmod(mode)  # safetensors writes files that others cannot read
            os.replace(temporary, real)
            fsync_dir(real.parent)
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            temporary.unlink()


def write_text(target: str | Path, text: str) -> None:
    """Write a text file with :func:`replacing`. Bytes of paths that are not UTF-8 are kept."""
    with replacing(target) as path:
        path.write_text(text, encoding='utf-8', errors='surrogateescape')


def append_line(target: Path, line: bytes) -> None:
    """Append a line to a file, completely or not at all, even if several machines do so at once.

    Raises:
        InputError: if it cannot be written.
    """
    with _explain_disk_errors(target, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, 'ab', buffering=0) as file:
            if fcntl:
                # Some file systems have no locks; on one machine, lines stay complete without them.
                with suppress(OSError):
                    fcntl.lockf(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            try:
                if file.write(line + b'\n') < len(line) + 1:  # the disk may be full
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                file.truncate(end)
                raise


@contextmanager
def new_folder(target: str | Path, durable: bool = True) -> Iterator[Path]:
    """Yield a folder to fill, which becomes the target if the block raises no error.

    The target does not exist yet, or is empty. After an error nothing is left.

    Args:
        target: the folder.
        durable: whether to wait until all files are on the disk, so that the folder survives a
            crash of the machine.

    Raises:
        InputError: if it cannot be written, for example on a full disk.
    """
    target = Path(target).absolute()
    real = Path(os.path.realpath(target))  # a link to an empty folder remains a link
    temporary = real.with_name(f'.{real.name[:100]}.{uuid4().hex[:8]}')
    missing: list[Path] = []
    try:
        # A file of this name is only written after an error, to see whether the disk is full.
        with _explain_disk_errors(target, temporary / 'full'):
            missing += [folder for folder in real.parents if not folder.exists()]
            temporary.mkdir(parents=True)
            yield temporary
            for path in temporary.rglob('*'):
                if durable and path.is_file():
                    _sync(path)
            if real.is_dir():
                real.rmdir()
            os.replace(temporary, real)
            fsync_dir(real.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in missing:  # innermost first; those of the target are not empty
            with suppress(OSError):
                folder.rmdir()


def check_target(target: str | Path, sources: Iterable[str | Path] = ()) -> None:
    """Check early whether :func:`replacing` would reject the target.

    Raises:
        InputError: if the target is not a file, if it is one of the sources, or if its parent is
            not a folder.
    """
    check_path(target)
    target = Path(target)
    for source in sources:
        if target.exists() and Path(source).exists() and os.path.samefile(source, target):
            raise InputError(
                f'{str(target)!r} would be overwritten while it is read; give another file to '
                'write.'
            )
    if target.exists() and not target.is_file():
        raise InputError(
            f'{str(target)!r} cannot be written, since it is '
            f'{"a folder" if target.is_dir() else "not a regular file"}; give the name of a file.'
        )
    parent = next((folder for folder in target.absolute().parents if folder.exists()), None)
    if parent is not None and not parent.is_dir():
        raise InputError(
            f'{str(target)!r} cannot be written, since {str(parent)!r} is a file; give another '
            'folder.'
        )


def check_path(path: str | Path) -> None:
    """Raise an ``InputError`` if an output path is a URL, which ``Path`` turns into folders."""
    if ADDRESS.match(str(path)):
        raise InputError(
            f'{str(path)!r} is a URL, but files can only be written on this machine; give a path.'
        )


def _sync(path: Path) -> None:
    """Wait until the content is on disk. Otherwise a machine crash could leave an empty file."""
    with open(path, 'rb+') as file:
        os.fsync(file.fileno())


def fsync_dir(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if not hasattr(os, 'O_DIRECTORY'):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError:  # some shared file systems reject it for folders
        pass
    finally:
        os.close(descriptor)


@contextmanager
def _explain_disk_errors(target: Path, temporary: Path) -> Iterator[None]:
    """Turn disk errors into a sentence that names the target.

    Args:
        target: the file or folder to write.
        temporary: a file, or a path for one, on the same disk, see :func:`_disk_error`.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = error if isinstance(error, OSError) else _disk_error(temporary)
        if reason is None:
            raise
        state = 'the previous file is unchanged' if target.is_file() else 'nothing was left there'
        raise InputError(
            f'{str(target)!r} cannot be written ({reason.strerror or reason}); {state}: make '
            'room, or give another path.'
        ) from error


def _disk_error(path: Path) -> OSError | None:
    """The error when a file grows, or None if it can grow.

    The writers of torch and safetensors raise their own errors on a full disk. Their partial file
    still fills the disk, so writing more to it fails again.
    """
    try:
        with open(path, 'ab') as file:
            file.write(PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return None
