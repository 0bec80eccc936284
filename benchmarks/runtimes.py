"""Time a detector in torch (float32), onnxruntime and OpenVINO (both in float32 and int8).

    python benchmarks runtimes RUN VAL.json IMAGES [--calibrate 100] [--others NAME=FILE.onnx ...]

It prints the milliseconds of one forward pass, from preprocessed pixels to boxes, on one thread
(the median of ``--rounds``), the megabytes of the weights or the file, and COCO's AP on
``VAL.json``.

``RUN`` is exported at the image size of its test. In the int8 file, convolutions and matrix
products are in int8, by onnxruntime's static quantization. It is calibrated with the first images
of ``--train``, annotations of other images in the same folder; the default is ``VAL.json``.
OpenVINO runs the same files. If OpenVINO or ncnn is not installed, or a runtime does not take the
file, the error is printed instead of a row.

With ``--pnnx``, the program of ncnn's converter, the layers that ncnn lacks are listed; ncnn is not
timed. ``--others`` are files of other programs, such as ``yolo export format=onnx`` writes. They
are timed with random images of their own size, where dynamic dimensions are 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import vit_plugin
from benchmarks.coco_ap import average_precision
from benchmarks.measuring.one_image import milliseconds
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.deploy.runtimes import Arrays, InOnnxruntime, InOpenVino
from vit_plugin.passes import optimize

QUANTIZED = ['Conv', 'MatMul', 'Gemm']  # ONNX's operators
MEGA = 1e6
RUNTIMES = dict(onnxruntime=InOnnxruntime, OpenVINO=InOpenVino)


class Row(NamedTuple):
    """A line of the table: milliseconds, megabytes, and AP in per cent if it was measured."""

    name: str
    ms: float
    megabytes: float
    ap: float | None = None

    def __str__(self) -> str:
        ap = '' if self.ap is None else f'{self.ap:.1f}'
        return f'| {self.name} | {self.ms:.1f} | {self.megabytes:.1f} | {ap} |'


def inputs_of(model: ExportedModel, image: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs of an exported model for an image in BGR, by name."""
    placed = model.apply_pipeline(image)
    arrays = model.channels_of(placed.pixels)[None], np.array([placed.unpadded_size])
    return dict(zip(model.inputs, arrays, strict=False))


class Photographs(CalibrationDataReader):
    """Images to calibrate a quantization with, as inputs of the model."""

    def __init__(self, model: ExportedModel, paths: Sequence[Path]) -> None:
        self.batches: Iterator[dict] = (inputs_of(model, cv2.imread(str(path))) for path in paths)

    def get_next(self) -> dict | None:
        return next(self.batches, None)


def images_of(annotations: Path, folder: Path) -> list[Path]:
    """The images that a file of COCO annotations lists."""
    return [folder / row['file_name'] for row in json.loads(annotations.read_text())['images']]


def write_int8(file: Path, target: Path, paths: Sequence[Path]) -> None:
    """Quantize an exported file, calibrated with these images."""
    prepared = target.with_suffix('.prepared.onnx')
    quant_pre_process(str(file), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        prepared,
        target,
        Photographs(ExportedModel(file), paths),
        QuantFormat.QDQ,
        op_types_to_quantize=QUANTIZED,
        per_channel=True,
        reduce_range=True,  # processors without VNNI sum pairs in 16 bits
    )


def time_runtime(
    name: str, file: Path, open_runtime: Any, rounds: int, given: Arrays, compute_ap: Any
) -> Row | str:
    """Measure a runtime.

    Args:
        name: the first cell of the row.
        file: the exported file.
        open_runtime: (file, threads=...) -> the runtime, as the classes in ``RUNTIMES``.
        rounds: number of measurements.
        given: the inputs to time it with.
        compute_ap: a model's AP in percent. None: it is not measured.

    Returns:
        The row, or the error of a runtime that fails.
    """
    try:
        runtime = open_runtime(file, threads=1)
        ms = milliseconds(lambda: runtime(given), rounds)
        runtime.metadata = InOnnxruntime(file).metadata  # OpenVINO does not read those of ONNX
        ap = compute_ap and compute_ap(ExportedModel(file, runtime))
    except Exception as error:  # each runtime has errors of its own
        return error_line(name, error)
    return Row(name, ms, file.stat().st_size / MEGA, ap)


def error_line(name: str, error: Exception) -> str:
    """The class of an error and the first line of its message, in place of the row ``name``."""
    message = str(error).strip().partition('\n')[0]
    return f'{name}: {type(error).__name__}: {message[:200]}'


def time_torch(run: str, given: Arrays, rounds: int, compute_ap: Any) -> Row:
    """Measure a run in torch, with the passes of ``vit-plugin infer``.

    Args:
        run: the folder or checkpoint of the run.
        given: the inputs of its exported file, in the order of the model's arguments.
        rounds: number of measurements.
        compute_ap: a model's AP in percent.
    """
    trained = vit_plugin.load(run, device='cpu')
    num_bytes = sum(tensor.nbytes for tensor in trained.model.state_dict().values())
    graph = optimize(deploy(trained.model), frozen=True)
    tensors = [torch.from_numpy(array) for array in given.values()]

    def call() -> None:
        with torch.inference_mode():
            graph(*tensors)

    ms = milliseconds(call, rounds)
    return Row('torch, float32', ms, num_bytes / MEGA, compute_ap(trained.optimized()))


def check_ncnn(pnnx: str, file: Path, given: Arrays, folder: Path) -> str:
    """Convert a file for ncnn, and list the layers of the result that ncnn does not have.

    Args:
        pnnx: path of the converter.
        file: the exported file.
        given: inputs of the file, for their shapes.
        folder: folder of the converted file.
    """
    import ncnn

    pnnx_types = {'float32': 'f32', 'int64': 'i64'}
    shapes = ','.join(
        f'[{",".join(map(str, array.shape))}]{pnnx_types[str(array.dtype)]}'
        for array in given.values()
    )
    copy = folder / 'converted.onnx'
    copy.write_bytes(file.read_bytes())
    command = [pnnx, copy.name, f'inputshape={shapes}']
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    layers = folder / 'converted.ncnn.param'
    if not layers.is_file():
        return 'ncnn: pnnx writes no file'
    # The first two lines are a magic number and the numbers of layers and blobs.
    layer_types = {line.split()[0] for line in layers.read_text().splitlines()[2:]}
    lacking = sorted(name for name in layer_types if ncnn.layer_to_index(name) < 0)
    return f'ncnn has no layer for {", ".join(lacking)}' if lacking else 'ncnn has all layers'


def random_inputs(file: Path) -> dict[str, np.ndarray]:
    """Random images for a file of another program, and their sizes if it asks for them.

    Float inputs are images. An integer input is the size of the images, which come before it.
    """
    rng, given = np.random.default_rng(0), {}
    sides: list[int] = []
    for argument in onnxruntime.InferenceSession(str(file)).get_inputs():
        shape = [side if isinstance(side, int) else 1 for side in argument.shape]
        if argument.type == 'tensor(int64)':
            given[argument.name] = np.array([sides])
        else:
            given[argument.name], sides = rng.random(shape, np.float32), shape[2:]
    return given


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('run', help='a run of vit-plugin train --data --task detection')
    parser.add_argument(
        'annotations', type=Path, metavar='VAL.json', help='COCO annotations to validate with'
    )
    parser.add_argument('images', type=Path)
    parser.add_argument('--train', type=Path, help='annotations of the images to calibrate with')
    parser.add_argument('--calibrate', type=int, default=100, metavar='IMAGES')
    parser.add_argument('--others', nargs='*', default=[], metavar='NAME=FILE')
    parser.add_argument('--pnnx', help="the program of ncnn's converter")
    parser.add_argument('--rounds', type=int, default=30)
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)

    def compute_ap(model: Callable[[np.ndarray], Any]) -> float:
        return average_precision(model, args.annotations, args.images)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, int8_file = folder / 'model.onnx', folder / 'int8.onnx'
        command = [sys.executable, '-m', 'vit_plugin', 'export', args.run, '--out', str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        calibration = images_of(args.train or args.annotations, args.images)[: args.calibrate]
        write_int8(file, int8_file, calibration)
        image = cv2.imread(str(images_of(args.annotations, args.images)[0]))
        given = inputs_of(ExportedModel(file), image)
        print('| | ms | MB | AP |\n|---|--:|--:|--:|')
        print(time_torch(args.run, given, args.rounds, compute_ap), flush=True)
        for kind, path in (('float32', file), ('int8', int8_file)):
            for runtime, open_runtime in RUNTIMES.items():
                row = time_runtime(
                    f'{runtime}, {kind}', path, open_runtime, args.rounds, given, compute_ap
                )
                print(row, flush=True)
        if args.pnnx:
            try:
                print(check_ncnn(str(Path(args.pnnx).resolve()), file, given, folder))
            except Exception as error:  # neither ncnn nor the converter may be there
                print(error_line('ncnn', error))
    for other in args.others:
        name, _, path = other.partition('=')
        try:
            given = random_inputs(Path(path))
        except Exception as error:  # onnxruntime has a class for each error
            print(error_line(name, error), flush=True)
            continue
        for runtime, open_runtime in RUNTIMES.items():
            row = time_runtime(
                f'{name}, {runtime}', Path(path), open_runtime, args.rounds, given, None
            )
            print(row, flush=True)


if __name__ == '__main__':
    main()
