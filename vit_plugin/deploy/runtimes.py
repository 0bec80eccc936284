"""The runtimes of exported files: onnxruntime for ONNX, OpenVINO for its own format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from vit_plugin.errors import ConfigError, needed_by, rejecting

METADATA_KEY = 'vit_plugin'  # key of the JSON about inputs and outputs in a file's metadata

Arrays = Mapping[str, np.ndarray]
Shape = tuple[int | str, ...]  # dynamic dimensions are names


class Runtime(Protocol):
    """An exported file that can be run.

    Attributes:
        inputs: name -> shape, in their order.
        outputs: names, in their order.
        metadata: its text entries.
    """

    inputs: Mapping[str, Shape]
    outputs: Sequence[str]
    metadata: Mapping[str, str]

    def __call__(self, given: Arrays) -> Sequence[np.ndarray]:
        """Run the file on its inputs by name, and return its outputs in order."""
        ...


class InOnnxruntime:
    """A file in ONNX.

    Args:
        path: the file.
        threads: threads per operation. None: one per core.

    Raises:
        ConfigError: if onnxruntime does not take the file.
        MissingExtraError: if onnxruntime is not installed.
    """

    def __init__(self, path: str | Path, threads: int | None = None) -> None:
        with needed_by('A file in ONNX'):
            import onnxruntime
        options = onnxruntime.SessionOptions()
        if threads:
            options.intra_op_num_threads = options.inter_op_num_threads = threads
        # onnxruntime has a separate class for each error.
        with rejecting(f'{str(path)!r} cannot be run', 'export it again'):
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=['CPUExecutionProvider']
            )
        self.inputs: Mapping[str, Shape] = {
            entry.name: tuple(entry.shape) for entry in self._session.get_inputs()
        }
        self.outputs: Sequence[str] = [output.name for output in self._session.get_outputs()]
        self.metadata: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map

    def __call__(self, given: Arrays) -> Sequence[np.ndarray]:
        return self._session.run(None, dict(given))


class InOpenVino:
    """A file in OpenVINO's format or in ONNX, in float32 where OpenVINO would take bfloat16.

    Args:
        path: the ``.xml``, next to its ``.bin``, or the ``.onnx``.
        threads: see :class:`InOnnxruntime`.

    Raises:
        ConfigError: if OpenVINO does not take the file.
        MissingExtraError: if OpenVINO is not installed.
    """

    def __init__(self, path: str | Path, threads: int | None = None) -> None:
        with needed_by("A file in OpenVINO's format"):
            import openvino
        settings: dict[str, int | str] = dict(INFERENCE_PRECISION_HINT='f32')
        if threads:
            settings['INFERENCE_NUM_THREADS'] = threads
        with rejecting(f'{str(path)!r} cannot be run', 'export it again'):
            model = openvino.Core().read_model(str(path))
            self._compiled = openvino.compile_model(model, 'CPU', settings)
        self.inputs: Mapping[str, Shape] = {
            port.any_name: tuple(
                side.get_length() if side.is_static else f'{port.any_name}_{axis}'
                for axis, side in enumerate(port.partial_shape)
            )
            for port in self._compiled.inputs
        }
        self.outputs: Sequence[str] = [port.any_name for port in self._compiled.outputs]
        self.metadata: Mapping[str, str] = {
            key: text
            for key, entry in model.rt_info.items()  # entries are dicts or values of many types
            if isinstance(text := getattr(entry, 'value', None), str)
        }

    def __call__(self, given: Arrays) -> Sequence[np.ndarray]:
        results = self._compiled(dict(given))
        return [results[port] for port in self._compiled.outputs]


RUNTIMES: Mapping[str, type[InOnnxruntime] | type[InOpenVino]] = {
    '.onnx': InOnnxruntime,
    '.xml': InOpenVino,
}


def open_exported(path: str | Path) -> Runtime:
    """Open a file with the runtime for its suffix.

    Raises:
        ConfigError: if the runtime does not take it, or if no runtime has its suffix.
        MissingExtraError: if the runtime is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in RUNTIMES:
        raise ConfigError(f'{str(path)!r} has no runtime; give a file in {" or ".join(RUNTIMES)}.')
    return RUNTIMES[suffix](path)
