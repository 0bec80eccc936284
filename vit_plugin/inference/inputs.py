"""Inputs of a command: images, folders, URLs, videos and webcams. Importing it needs no torch."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from anyfolder.complete import ADDRESS
from anyfolder.pixels.image_files import image_files, walk_files
from anyfolder.terminal import printable
from vit_plugin.errors import ConfigError, rejecting

from .streams import FRAME_READERS

Item = TypeVar('Item')

URLS = ('http://', 'https://')
VIDEO_SUFFIXES = ('.mp4', '.m4v', '.mov', '.avi', '.mkv', '.webm', '.mpg', '.mpeg', '.wmv')


@dataclass(frozen=True)
class Input:
    """An image, or a source of frames.

    Args:
        name: the path, the URL or the number of a webcam.
        root: the folder that was given, or the folder of the file that was given.
        reader: a key of :data:`FRAME_READERS`.
    """

    name: str
    root: Path = Path()
    reader: str = 'image'

    @property
    def is_video(self) -> bool:
        """True if it has frames, from a file or a webcam."""
        return self.reader in ('video', 'webcam')

    @property
    def relative_path(self) -> Path:
        """The path below ``root``, which its picture has below the output folder.

        For a URL, the last part of its path.
        """
        if self.reader == 'url':
            return Path(Path(url_path(self.name)).name.strip('.') or 'image')
        if self.reader == 'webcam':
            return Path(f'webcam_{self.name}')
        return Path(self.name).relative_to(self.root)

    def frames(self) -> Iterator[np.ndarray]:
        """The pixels (H, W, 3) in BGR: one array, or one per frame.

        Raises:
            ConfigError: if it cannot be read.
        """
        return FRAME_READERS[self.reader](self.name)

    def read(self) -> np.ndarray:
        """The pixels (H, W, 3) of an image, not a video."""
        return next(self.frames())


def url_path(url: str) -> str:
    """The path of a URL, unquoted, without null bytes, which no file name can have."""
    return unquote(urlsplit(url).path).replace('\0', '')


class Frame(NamedTuple):
    """Pixels, and where they come from."""

    source: Input
    number: int | None  # in a video, from 0
    image: np.ndarray  # (H, W, 3) in BGR


def find_inputs(arguments: Sequence[str], with_videos: bool = True) -> list[Input]:
    """The inputs that the arguments of a command name, each once.

    A folder stands for all images and videos below it. A file that several arguments name has the
    innermost of their folders as its root.

    Args:
        arguments: paths, URLs of images, and numbers of webcams.
        with_videos: whether videos and webcams are wanted.

    Raises:
        ConfigError: if an argument does not exist or is empty, or is a video or webcam where
            ``with_videos`` is false.
    """
    by_name: dict[str, Input] = {}
    for argument in arguments:
        for source in _parse_argument(argument):
            earlier = by_name.get(source.name)
            if earlier is None or len(earlier.root.parts) < len(source.root.parts):
                by_name[source.name] = source
    inputs = list(by_name.values())
    if not with_videos and (wrong := next((source for source in inputs if source.is_video), None)):
        raise ConfigError(
            f'{wrong.name!r} is a {wrong.reader}, and this command takes images; '
            'vit-plugin infer takes videos, too.'
        )
    return inputs


def _parse_argument(argument: str) -> list[Input]:
    path = Path(argument)
    if not argument.strip():
        raise ConfigError('The name of an image is empty; give a file, a folder or a URL.')
    if argument.startswith(URLS):
        with rejecting(f'{argument!r} is not a valid URL', 'correct it', (ValueError,)):
            path = Path(urlsplit(argument).path)
        if is_video(path):
            raise ConfigError(f'{argument!r} is a video; download it, and give the file.')
        return [Input(argument, reader='url')]
    if ADDRESS.match(argument) and not path.exists():
        raise ConfigError(
            f'{argument!r} is not a supported URL; give {" or ".join(URLS)}..., or a file.'
        )
    if argument.isdecimal() and not path.exists():
        return [Input(argument, reader='webcam')]
    if not path.is_dir():
        reader = 'video' if path.is_file() and is_video(path) else 'image'
        return [Input(name, Path(name).parent, reader) for name in image_files([argument])]
    videos = [str(file) for file in walk_files(path) if is_video(file)]
    images = image_files([argument], may_be_empty=bool(videos))
    names = sorted([*images, *videos], key=Path)
    return [Input(name, path, 'video' if name in videos else 'image') for name in names]


def is_video(path: Path) -> bool:
    """True if a name has the suffix of a video, and is not hidden."""
    return path.suffix.lower() in VIDEO_SUFFIXES and not path.name.startswith('.')


@dataclass
class Reading:
    """Reads inputs. Unreadable inputs are reported and skipped.

        reading = Reading(find_inputs(args.images))
        for frame in reading.frames():
            ...
        reading.finish()

    Args:
        inputs: what is read.
        errors: the error of each unreadable input so far.
    """

    inputs: Sequence[Input]
    errors: list[ConfigError] = field(default_factory=list)

    def frames(self) -> Iterator[Frame]:
        """The pixels of every input, one after the other."""
        for source in self.inputs:
            with self._collecting_errors():
                for number, image in enumerate(source.frames()):
                    yield Frame(source, number if source.is_video else None, image)

    def read(self, source: Input, convert: Callable[[np.ndarray], Item]) -> Item | None:
        """The result of a function on the pixels of an image, or None if they cannot be read.

        Several threads may call it.
        """
        pixels = None
        with self._collecting_errors():
            pixels = source.read()
        return None if pixels is None else convert(pixels)

    @contextmanager
    def _collecting_errors(self) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            self.errors.append(error)
            if len(self.inputs) > 1:  # for a single input, the final error has the reason
                print(printable(error), file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Raise an error if some inputs could not be read.

        Raises:
            ConfigError: with their number, or the reason for a single input.
        """
        if len(self.inputs) == 1 and self.errors:
            raise self.errors[0]
        if self.errors:
            raise ConfigError(
                f'{len(self.errors)} of {len(self.inputs)} inputs could not be read; '
                'the reasons are above.'
            )
