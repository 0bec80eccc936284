"""Read the pixels of images at URLs, and of videos and webcams. Importing it needs no torch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from anyfolder.pixels.images import read_image
from vit_plugin.errors import ConfigError, first_line, needed_by, rejecting

IMAGE_TIMEOUT = 30  # seconds to wait for a server, and for each further part of its answer
MAX_DOWNLOAD_BYTES = 64 << 20  # limit for an image from a URL
WEBCAM_FPS = 25.0  # frame rate of a written video, if its source states no rate
# A video with less than this share of its stated frames is damaged. Their number is an estimate.
COMPLETE_SHARE = 0.9


def read_url(url: str) -> np.ndarray:
    """The pixels (H, W, 3) of an image at a URL, in BGR.

    Raises:
        ConfigError: if the server does not answer or stops sending for :data:`IMAGE_TIMEOUT`, if
            the file is larger than :data:`MAX_DOWNLOAD_BYTES`, or if it is not an image.
    """
    import requests

    content = bytearray()
    failed = (requests.RequestException, ValueError)  # ValueError: an invalid URL
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
    with TemporaryDirectory() as folder:  # read_image reads only files
        path = Path(folder, 'image')
        path.write_bytes(content)
        try:
            return read_image(path)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(path), url)) from error


def _cause(error: BaseException) -> str:
    """The cause behind the nested errors of urllib3, such as 'Connection refused'.

    It follows the connection, as in '<urllib3.connection.HTTPConnection object at 0x7f>: Failed'.
    """
    reason = getattr(error.args[0] if error.args else None, 'reason', None)
    return first_line(reason if isinstance(reason, BaseException) else error).rpartition('>: ')[2]


def read_video(source: str | int) -> Iterator[np.ndarray]:
    """The frames (H, W, 3) in BGR of a video file, or of a webcam by its number, by supervision.

    Raises:
        ConfigError: if it cannot be opened, or has fewer than :data:`COMPLETE_SHARE` of the frames
            that it states.
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
        # At least 1, so that a video without frames counts as damaged, too.
        stated = max(sv.VideoInfo.from_video_path(source).total_frames or 0, 1)
        if count < COMPLETE_SHARE * stated:
            raise ConfigError(
                f'{_subject(source)} ends after {count} of {stated} frames; it is damaged.'
            )


def _subject(source: str | int) -> str:
    return f'The video {source!r}' if isinstance(source, str) else f'The webcam {source}'


def frame_rate(path: str) -> float:
    """Frames per second of a video file."""
    import supervision as sv

    return sv.VideoInfo.from_video_path(path).fps or WEBCAM_FPS


# For each reader of an Input, the function from its name to its frames.
FRAME_READERS: dict[str, Callable[[str], Iterator[np.ndarray]]] = dict(
    image=lambda name: iter([read_image(name)]),
    url=lambda name: iter([read_url(name)]),
    video=read_video,
    webcam=lambda name: read_video(int(name)),
)
