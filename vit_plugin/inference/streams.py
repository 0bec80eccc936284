"""Pixels of images at URLs, and of videos and webcams. Without torch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from anyfolder.pixels.images import read_image
from vit_plugin.errors import ConfigError, first_line, needed_by, rejecting

IMAGE_TIMEOUT = 30  # seconds to wait for a server
MAX_DOWNLOAD_BYTES = 64 << 20  # limit for an image from a URL
WEBCAM_FPS = 25.0  # rate of a written video if the source has none
COMPLETE_SHARE = 0.9  # share of the stated number of frames, which is an estimate


def read_url(url: str) -> np.ndarray:
    """The pixels (H, W, 3) of an image at a URL, in BGR.

    Raises:
        ConfigError: if it cannot be downloaded within :data:`IMAGE_TIMEOUT` and
            :data:`MAX_DOWNLOAD_BYTES`, or if it is not an image.
    """
    import requests

    content = bytearray()
    failed = (requests.RequestException, ValueError)
    with (
        rejecting(f'The image {url!r} cannot be downloaded', kinds=failed, cause=_cause),
        requests.get(url, stream=True, timeout=IMAGE_TIMEOUT) as answer,
    ):
        answer.raise_for_status()
        for chunk in answer.iter_content(1 << 16):
            content += chunk
            if len(content) > MAX_DOWNLOAD_BYTES:
                raise ConfigError(
                    f'The image {url!r} has more than {MAX_DOWNLOAD_BYTES >> 20} MiB; '
                    'download it, and give the file.'
                )
    with TemporaryDirectory() as folder:
        path = Path(folder, 'image')
        path.write_bytes(content)
        try:
            return read_image(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), url)) from error


def _cause(error: BaseException) -> str:
    """The cause behind the nested errors of urllib3, such as 'Connection refused'."""
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
    # supervision raises no more specific error than Exception
    with rejecting(f'{_subject(source)} cannot be read'):
        for frame in sv.get_video_frames_generator(source):
            yield frame
            count += 1
    if isinstance(source, str):
        promised = sv.VideoInfo.from_video_path(source).total_frames or 0
        if count < COMPLETE_SHARE * max(promised, 1):
            raise ConfigError(
                f'{_subject(source)} ends after {count} of {max(promised, 1)} frames; it is '
                'damaged.'
            )


def _subject(source: str | int) -> str:
    return f'The video {source!r}' if isinstance(source, str) else f'The webcam {source}'


def frame_rate(path: str) -> float:
    """Frames per second of a video file."""
    import supervision as sv

    return sv.VideoInfo.from_video_path(path).fps or WEBCAM_FPS


# For each kind of input, the function from its name to its frames.
FRAME_READERS: dict[str, Callable[[str], Iterator[np.ndarray]]] = dict(
    image=lambda name: iter([read_image(name)]),
    url=lambda name: iter([read_url(name)]),
    video=read_video,
    webcam=lambda name: read_video(int(name)),
)
