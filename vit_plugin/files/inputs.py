"""What a command is asked about: image files, folders of them, URLs, videos and webcams. Without torch."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from vit_plugin.errors import ConfigError, first_line, needed_by

from .complete import check_target
from .images import image_files, read_image

T = TypeVar('T')

URLS = ('http://', 'https://')
VIDEO_SUFFIXES = ('.mp4', '.m4v', '.mov', '.avi', '.mkv', '.webm', '.mpg', '.mpeg', '.wmv')
TIMEOUT = 30  # seconds without an answer
LARGEST = 64 << 20  # bytes of an image from a URL
WEBCAM_FPS = 25.  # of the video that is written, where a webcam does not say it
COMPLETE = 0.9  # of the frames that a video says it has, which is an estimate


@dataclass(frozen=True)
class Input:
    """An image, or what has many of them.

    Args:
        name: the path, the URL or the number of a webcam.
        root: the folder that was given; of a file that was given, the folder in which it is.
        reader: a key of :data:`READERS`.
    """
    name: str
    root: Path = Path()
    reader: str = 'image'

    @property
    def is_video(self) -> bool:
        """Whether it has frames, from a file or a webcam."""
        return self.reader in ('video', 'webcam')

    @property
    def relative(self) -> Path:
        """Where it is below its root, which is where its picture is below another folder."""
        if self.reader == 'url':
            return Path(Path(unquote(urlsplit(self.name).path)).name.strip('.') or 'image')
        return Path(f'webcam_{self.name}') if self.reader == 'webcam' else Path(self.name).relative_to(self.root)

    def frames(self) -> Iterator[np.ndarray]:
        """Its pixels (H, W, 3) in BGR: one array, or those of each frame.

        Raises:
            ConfigError: if it cannot be read.
        """
        return READERS[self.reader](self.name)

    def read(self) -> np.ndarray:
        """The pixels (H, W, 3) of one that is no video."""
        return next(self.frames())


class Frame(NamedTuple):
    """Pixels with where they are from."""
    source: Input
    number: int | None  # in a video, from 0
    image: np.ndarray  # (H, W, 3) in BGR


def find_inputs(arguments: Sequence[str], videos: bool = True) -> list[Input]:
    """The inputs that the arguments of a command name, each once. Folders are their images and videos, and those below.

    Args:
        arguments: paths, URLs of images, and numbers of webcams.
        videos: whether videos and webcams are wanted.

    Raises:
        ConfigError: if one does not exist, is empty, or is a video where none is wanted.
    """
    found = list(dict.fromkeys(one for argument in arguments for one in _inputs_of(argument)))
    if not videos and (wrong := next((one for one in found if one.is_video), None)):
        raise ConfigError(f'{wrong.name!r} is a {wrong.reader}, and this command takes images; vit-plugin infer takes '
                          'videos, too.')
    return found


def _inputs_of(argument: str) -> list[Input]:
    path = Path(argument)
    if not argument.strip():
        raise ConfigError('The name of an image is empty; give a file, a folder or a URL.')
    if argument.startswith(URLS):
        if is_video(Path(urlsplit(argument).path)):
            raise ConfigError(f'{argument!r} is a video; download it, and give the file.')
        return [Input(argument, reader='url')]
    if argument.isdecimal() and not path.exists():
        return [Input(argument, reader='webcam')]
    if not path.is_dir():
        known = path.is_file() and is_video(path)
        return [Input(name, Path(name).parent, 'video' if known else 'image') for name in image_files([argument])]
    videos = [str(file) for file in path.rglob('*') if is_video(file) and file.is_file()]
    images = _images_in(argument, allow_none=bool(videos))
    names = sorted([*images, *videos], key=Path)
    return [Input(name, path, 'video' if name in videos else 'image') for name in names]


def _images_in(folder: str, allow_none: bool) -> list[str]:
    try:
        return image_files([folder])
    except ConfigError:
        if allow_none:
            return []
        raise


def is_video(path: Path) -> bool:
    """Whether a name has the suffix of a video, and is not hidden."""
    return path.suffix.lower() in VIDEO_SUFFIXES and not path.name.startswith('.')


def read_url(url: str) -> np.ndarray:
    """The pixels (H, W, 3) of an image at a URL, in BGR.

    Raises:
        ConfigError: if it cannot be downloaded within :data:`TIMEOUT` and :data:`LARGEST`, or is no image.
    """
    import requests
    content = bytearray()
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_content(1 << 16):
                content += chunk
                if len(content) > LARGEST:
                    raise ConfigError(f'The image {url!r} has more than {LARGEST >> 20} MiB; download it, and give the '
                                      'file.')
    except (requests.RequestException, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f'The image {url!r} cannot be downloaded ({_cause(error)}).') from error
    with TemporaryDirectory() as folder:
        path = Path(folder, 'image')
        path.write_bytes(content)
        try:
            return read_image(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), url)) from error


def _cause(error: BaseException) -> str:
    """What is behind the nested errors of urllib3, such as 'Connection refused'."""
    reason = getattr(error.args[0] if error.args else None, 'reason', None)
    return first_line(reason if isinstance(reason, BaseException) else error).rpartition('>: ')[2]


def read_video(source: str | int) -> Iterator[np.ndarray]:
    """The frames (H, W, 3) of a video file, or of the webcam of a number, in BGR, by supervision.

    Raises:
        ConfigError: if it cannot be opened, or ends long before its end.
        MissingExtraError: if supervision is not installed.
    """
    with needed_by('A video'):
        import supervision as sv
    count = 0
    try:
        for frame in sv.get_video_frames_generator(source):
            yield frame
            count += 1
    except Exception as error:  # supervision raises no more special one
        raise ConfigError(f'{_said(source)} cannot be read ({first_line(error)}).') from error
    if isinstance(source, str):
        promised = sv.VideoInfo.from_video_path(source).total_frames or 0
        if count < COMPLETE * max(promised, 1):
            raise ConfigError(f'{_said(source)} ends after {count} of {max(promised, 1)} frames; it is damaged.')


def _said(source: str | int) -> str:
    return f'The video {source!r}' if isinstance(source, str) else f'The webcam {source}'


def frame_rate(source: Input) -> float:
    """Frames per second of a video."""
    if source.reader == 'webcam':
        return WEBCAM_FPS
    import supervision as sv
    return sv.VideoInfo.from_video_path(source.name).fps or WEBCAM_FPS


READERS: dict[str, Callable[[str], Iterator[np.ndarray]]] = dict(
    image=lambda name: iter([read_image(name)]),
    url=lambda name: iter([read_url(name)]),
    video=read_video,
    webcam=lambda name: read_video(int(name)))


@dataclass
class Reading:
    """Reads inputs. One that cannot be read is named, counted and left out, and the rest goes on.

        reading = Reading(find_inputs(args.images))
        for frame in reading.frames():
            ...
        reading.finish()

    Args:
        inputs: what is read.
    """
    inputs: Sequence[Input]
    errors: list[ConfigError] = field(default_factory=list)

    def frames(self) -> Iterator[Frame]:
        """The pixels of every input, one after the other."""
        for source in self.inputs:
            with self._counted():
                for number, image in enumerate(source.frames()):
                    yield Frame(source, number if source.is_video else None, image)

    def read(self, source: Input, then: Callable[[np.ndarray], T]) -> T | None:
        """What a function makes of the pixels of an image, or None if they cannot be read. For several threads, too."""
        pixels = None
        with self._counted():
            pixels = source.read()
        return None if pixels is None else then(pixels)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            self.errors.append(error)
            if len(self.inputs) > 1:  # the one reason is what the command ends with
                print(error, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End with an error if there were inputs that cannot be read.

        Raises:
            ConfigError: that says how many, or of a single input why.
        """
        if len(self.inputs) == 1 and self.errors:
            raise self.errors[0]
        if self.errors:
            raise ConfigError(f'{len(self.errors)} of {len(self.inputs)} inputs could not be read; '
                              'the reasons are above.')


def targets_of(inputs: Sequence[Input], folder: Path) -> dict[Input, Path]:
    """The picture (.png) or video (.mp4) to write below a folder for each input.

    It is where the input is below the folder that was given, by the same name. Where two would be
    one file, these keep their suffix before the new one (a.jpg.png, a.png.png). If that is not
    enough, they are where the inputs are below the folder that all have in common.

    Raises:
        ConfigError: if two would still be one file, if one is an input, or if one cannot be written.
    """
    targets: dict[Input, Path] = {}
    for place in (_by_stem, _by_name, _by_path(inputs)):
        left = [one for one in inputs if one not in targets]
        places = {one: folder / place(one) for one in left}
        counts = Counter([*targets.values(), *places.values()])
        targets |= {one: path for one, path in places.items() if counts[path] == 1}
    same = [one.name for one in inputs if one not in targets]
    if same:
        raise ConfigError(f'--out: {" and ".join(map(repr, same[:2]))} would be the same file in '
                          f'{str(folder)!r}; draw them into two folders.')
    check_apart(targets.values(), inputs)
    for target in targets.values():
        check_target(target)
    return targets


def _by_stem(source: Input) -> Path:
    return source.relative.with_suffix(_suffix(source))


def _by_name(source: Input) -> Path:
    return source.relative.with_name(source.relative.name + _suffix(source))


def _by_path(inputs: Sequence[Input]) -> Callable[[Input], Path]:
    """A function that gives the path of an input below the folder that all files have in common."""
    folders = [os.path.abspath(one.root) for one in inputs if one.reader in ('image', 'video')]
    above = os.path.commonpath(folders) if folders else '/'

    def place(source: Input) -> Path:
        if source.reader == 'url':
            host, path = urlsplit(source.name)[1:3]
            parts = [part for part in Path(unquote(path)).parts if part not in ('/', '.', '..')]
            return Path(host.replace(':', '_'), *parts[:-1], _by_name(source))
        return Path(os.path.relpath(os.path.abspath(source.root), above), _by_name(source))

    return place


def _suffix(source: Input) -> str:
    return '.mp4' if source.is_video else '.png'


def check_apart(targets: Iterable[Path], inputs: Sequence[Input]) -> None:
    """Raise a ``ConfigError`` if a file to write is one that is read."""
    read = {Path(one.name).resolve() for one in inputs if one.reader in ('image', 'video')}
    if both := next((path for path in targets if path.resolve() in read), None):
        raise ConfigError(f'--out: {str(both)!r} would be written over while it is read; give another folder.')
