"""Measure the time of one image on a CPU, and the memory of a process that does nothing else.

    python benchmarks/measuring/one_image.py eager B/16 224 1 10
    python benchmarks/measuring/one_image.py onnx model.onnx 224 1 10

The arguments are the runtime, the model, the side of the image, threads and rounds. It prints JSON.
A process that runs ONNX imports neither torch nor a framework, like a deployed program.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

WARM_UP_CALLS = 3


def eager(name: str, side: int, threads: int) -> Callable[[], Any]:
    """A call of a model as the commands run it: with its preprocessing and the CPU's passes."""
    import torch

    from vit_plugin.deploy.deployed import deploy
    from vit_plugin.models.classifier import create_model
    from vit_plugin.passes import optimize

    torch.set_num_threads(threads)
    model = optimize(deploy(create_model(name, img_size=side)), frozen=True)
    images = 255 * torch.rand(1, 3, side, side)

    def call() -> None:
        with torch.inference_mode():
            model(images)

    return call


def onnx(path: str, side: int, threads: int) -> Callable[[], Any]:
    """A call of a file of ``vit-plugin export`` in onnxruntime."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    images = 255 * np.random.default_rng(0).random((1, 3, side, side), np.float32)
    return lambda: session.run(None, {'images': images})


RUNTIMES = dict(eager=eager, onnx=onnx)


def peak_resident() -> int:
    """The largest resident memory of this process so far, in bytes."""
    status = Path('/proc/self/status')
    if status.is_file():  # ru_maxrss would include what the parent had before exec
        text = status.read_text()
        return 1024 * int(text.partition('VmHWM:')[2].split()[0])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == 'darwin' else 1024 * peak


def milliseconds(call: Callable[[], Any], rounds: int) -> float:
    """The median of the rounds, after :data:`WARM_UP_CALLS` calls that do not count."""
    for _ in range(WARM_UP_CALLS):
        call()
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return 1000 * median(seconds)


def measure(runtime: str, model: str, side: int, threads: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a call, see :func:`milliseconds`, and MiB of the process."""
    ms = milliseconds(RUNTIMES[runtime](model, side, threads), rounds)
    return dict(ms=ms, mib=peak_resident() / 2**20)


if __name__ == '__main__':
    kind, name, *numbers = sys.argv[1:]
    print(json.dumps(measure(kind, name, *map(int, numbers))))
