"""Export a trained model to a file that runs without the framework.

The model is traced, written, run from the file, and compared, before the file gets its name.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from torch.export import ExportedProgram

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError, named_line, rejecting
from vit_plugin.models import VisionTransformer
from vit_plugin.weights.carried_records import append_record
from vit_plugin.weights.provenance import PROVENANCE_KEY as PROVENANCE
from vit_plugin.weights.provenance import Provenance

from .deployed_module import Deployed
from .onnx_file import Run, external_weights, write_onnx
from .openvino_file import weights_of_openvino, write_openvino
from .output_difference import FLOAT32_TOLERANCE, checking_finite, largest_difference
from .pt2_file import write_pt2
from .runtimes import METADATA_KEY
from .traced_graph import trace


def silent_stage(name: str) -> AbstractContextManager[None]:
    """The context of a stage that prints nothing, the default ``stage`` of :func:`export`."""
    return nullcontext()


def export(
    model: Deployed,
    out: Path,
    size: tuple[int, int] | None,
    dtype: str = 'float32',
    reference: Deployed | None = None,
    sources: Sequence[str | Path] = (),
    facts: str = '',
    record: Provenance | None = None,
    check: Callable[[Path], None] | None = None,
    batch: int | None = None,
    stage: Callable[[str], AbstractContextManager[None]] = silent_stage,
) -> float:
    """Write a model to a file, in the format of its suffix, and run the file.

    Args:
        model: the model.
        out: the file to write. After an error it is unchanged.
        size: height and width of the images. None means all sizes of complete patches, at least two
            by two.
        dtype: ``'float32'``, ``'float16'``, ``'bfloat16'`` or ``'int8'``.
        reference: the file is compared with this module. Default: the model.
        sources: files that were read. ``out`` must not be one of them.
        facts: JSON for the file's metadata, about inputs and outputs; empty for ``.pt2``. See
            :func:`~vit_plugin.deploy.export_facts.facts_of`.
        record: the provenance of its weights, stored in the file.
        check: called with the file before it appears as ``out``. It may raise an error.
        batch: number of images per call. None means any number.
        stage: called with the name of each stage, for a context in which it runs.

    Returns:
        The largest difference of the file from the reference, see :func:`largest_difference`.

    Raises:
        ConfigError: if the format does not support the model, dtype or size, or if the file cannot
            be written. Also if a float32 file differs from the reference.
    """
    backbone = model.model.backbone
    if size and isinstance(backbone, VisionTransformer):
        backbone.patch_embed.check_image_size(size)
    file_format = FILE_FORMATS[out.suffix]
    metadata = {METADATA_KEY: facts} if facts else {}
    if record:
        metadata[PROVENANCE] = record.text()
    with replacing(out, sources) as path, file_format.second_file(path, out, sources):
        with stage('Tracing the graph'):
            program = trace(model, size, batch)
        with stage('Writing the file'):
            run = file_format.write(program, path, dtype, model.outputs, metadata)
            if record:
                append_record(path, record)  # only archives can carry it
        as_config_error = rejecting(
            f'The file that was written for {str(out)!r} does not run',
            'nothing was written; try the other format',
            cause=named_line,
        )
        with stage('Comparing it with the model'), as_config_error:
            difference = largest_difference(reference or model, checking_finite(run), size, batch)
        if dtype == 'float32' and not difference <= FLOAT32_TOLERANCE:  # also for NaN
            raise ConfigError(
                f'The file that was written for {str(out)!r} is off by {difference:.1e} of the '
                'largest value, and nothing was written; try the other format.'
            )
        if check:
            with stage('Comparing the answers for photographs'):
                check(path)
    return difference


class FileFormat(NamedTuple):
    """How to write a format.

    Attributes:
        write: (graph, path, dtype, names of outputs, metadata) -> a function that runs the file.
        second_file: (temporary path, final path, files that must stay) -> a context, at whose end a
            second file with the weights is moved next to the final path.
    """

    write: Callable[[ExportedProgram, Path, str, Sequence[str], Mapping[str, str]], Run]
    second_file: Callable[[Path, Path, Sequence[str | Path]], AbstractContextManager[None]]


def no_second_file(
    path: Path, out: Path, sources: Sequence[str | Path]
) -> AbstractContextManager[None]:
    """The context for a format without a second file."""
    return nullcontext()


FILE_FORMATS = {
    '.pt2': FileFormat(write_pt2, no_second_file),
    '.onnx': FileFormat(write_onnx, external_weights),
    '.xml': FileFormat(write_openvino, weights_of_openvino),
}
