"""Run a model on frames in batches, and pass its predictions to the outputs."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

from anyfolder.terminal import printable
from anyfolder.wording import counted
from vit_plugin.files.standard_streams import BROKEN_PIPE_STATUS, is_read

from .inputs import Frame, Reading
from .prediction_writer import PredictionWriter
from .predictions import Prediction


def predict_all(
    reading: Reading,
    predict: Callable[[Sequence[Frame]], Sequence[Prediction]],
    outputs: Sequence[PredictionWriter],
    batch_size: int,
    score_thr: float,
) -> None:
    """Predict every frame, print a line for each, and write the predictions to the outputs.

    At most one batch is in memory. At the end, or when interrupted, a line has the number of images
    and the time. Without outputs, the program ends once nobody reads its lines, as by ``| head``.

    Raises:
        ConfigError: after all other inputs, if some could not be read.
    """
    count, begin = 0, time.perf_counter()
    try:
        with ExitStack() as stack:
            opened = [stack.enter_context(output) for output in outputs]
            for batch in batches(reading.frames(), batch_size):
                for frame, prediction in zip(batch, predict(batch), strict=True):
                    files = [output.add(frame, prediction) for output in opened]
                    number = '' if frame.number is None else f', frame {frame.number}'
                    line = f'{frame.source.name}{number}: {prediction.text(score_thr)}'
                    print(printable('; '.join([line, *filter(None, files)])), flush=True)
                    count += 1
                    if not (opened or is_read()):
                        raise SystemExit(BROKEN_PIPE_STATUS)
    finally:
        seconds = time.perf_counter() - begin
        failed = f'; {len(reading.errors)} could not be read' if reading.errors else ''
        print(
            f'{counted(count, "image")} in {seconds:.1f} s, {count / seconds:.1f} images/s{failed}.'
        )
    reading.finish()


def batches(frames: Iterable[Frame], size: int) -> Iterator[list[Frame]]:
    """Frames in lists of length ``size``; the last may be shorter."""
    iterator = iter(frames)
    while batch := list(islice(iterator, size)):
        yield batch
