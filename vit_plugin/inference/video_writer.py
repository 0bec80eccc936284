"""Write a video frame by frame."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import cv2
import numpy as np

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError, needed_by, rejecting


@contextmanager
def open_video_writer(
    target: Path, size: tuple[int, int], fps: float
) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that adds a frame (H, W, 3) in BGR to a video.

    An interrupted video has the frames written so far.

    Args:
        target: the file.
        size: width and height in pixels.
        fps: frames per second.

    Raises:
        ConfigError: if the video cannot be encoded, or lacks frames at its end.
    """
    with needed_by('A video'):
        import supervision as sv
    interrupt, count = None, 0
    with replacing(target) as path:
        with ExitStack() as stack:
            # Only around the opening, since errors of the frames pass through this context, too.
            with rejecting(
                f'{str(target)!r} cannot be encoded at {fps:g} frames per second',
                'give a video of another rate, or write a table of the predictions',
                (RuntimeError,),
            ):
                sink = stack.enter_context(sv.VideoSink(str(path), sv.VideoInfo(*size, fps)))

            def write(frame: np.ndarray) -> None:
                nonlocal count
                sink.write_frame(frame)
                count += 1

            try:
                yield write
            except KeyboardInterrupt as error:
                # Leave normally, so that the frames so far are kept; raised again below.
                interrupt = error
        _check_video(path, count, target)
    if interrupt:
        raise interrupt


def _check_video(path: Path, count: int, target: Path) -> None:
    """Raise a ``ConfigError`` if a video lacks frames. OpenCV is silent on a full disk."""
    stream = cv2.VideoCapture(str(path))
    written = int(stream.get(cv2.CAP_PROP_FRAME_COUNT)) if stream.isOpened() else 0
    stream.release()
    if written < count:
        raise ConfigError(
            f'{str(target)!r} cannot be written ({written} of {count} frames were); make room, or '
            'give another path.'
        )
