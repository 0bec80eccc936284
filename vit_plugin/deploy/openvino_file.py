"""A traced graph in OpenVINO's format: an ``.xml``, and its weights in a ``.bin`` next to it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from torch.export import ExportedProgram

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError, named_line, needed_by, rejecting

from .onnx_file import Run, tensor_function, write_onnx
from .runtimes import InOpenVino


def write_openvino(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = ('logits',),
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Write OpenVINO's format, by way of ONNX. Return a function that runs it.

    float16 is the dtype of the stored weights; OpenVINO chooses that of the computation.

    Raises:
        ConfigError: if the dtype is bfloat16 or int8, or if OpenVINO does not support the graph.
        MissingExtraError: if OpenVINO is not installed, or a package that ONNX needs is missing.
    """
    if dtype not in ('float32', 'float16'):
        raise ConfigError(f"--dtype {dtype} is not written in OpenVINO's format; give float16.")
    with needed_by("Export to OpenVINO's format"):
        import openvino
    with TemporaryDirectory(dir=path.parent) as folder:
        graph = Path(folder, 'model.onnx')
        write_onnx(program, graph, dtype='float32', outputs=outputs)
        what = 'This model cannot be written for OpenVINO'
        with rejecting(what, 'write an .onnx file', cause=named_line):
            model = openvino.convert_model(graph)
            for key, text in metadata.items():
                model.set_rt_info(text, [key])
            openvino.save_model(model, path, compress_to_fp16=dtype == 'float16')
    return tensor_function(InOpenVino(path))


@contextmanager
def weights_of_openvino(path: Path, out: Path, sources: Sequence[str | Path]) -> Iterator[None]:
    """Move the ``.bin`` of ``path`` next to ``out`` if this context succeeds."""
    written = path.with_suffix('.bin')
    try:
        with replacing(out.with_suffix('.bin'), sources) as weights:
            yield
            os.replace(written, weights)
    finally:
        written.unlink(missing_ok=True)
