"""Export a trained model to a file that runs without the framework.

The model is traced, written, run from the file, and compared, before the file gets its name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError, named_line, rejecting
from vit_plugin.models import VisionTransformer
from vit_plugin.passes.open_sizes import open_sizes
from vit_plugin.passes.precompute import precomputed
from vit_plugin.weights.carried_records import append_record
from vit_plugin.weights.provenance import PROVENANCE_KEY as PROVENANCE
from vit_plugin.weights.provenance import Provenance

from .deployed_module import Deployed, Outputs, largest
from .onnx_file import Run, external_weights, write_onnx
from .openvino_file import weights_of_openvino, write_openvino
from .runtimes import METADATA_KEY

# A float32 graph must equal the model. For other dtypes, the user decides which difference is
# acceptable.
FLOAT32_TOLERANCE = 1e-4
# For is_from_a_tie: relative noise on pixels, as large as float32's rounding after several sums,
# and the number of noisy copies. About every third copy decides a tie the other way.
ROUNDING = 1e-6
ROUNDED_COPIES = 8
# Batch sizes to compare for a file that takes any number of images.
COMPARED_BATCH_SIZES = (1, 2, 5)


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
            :func:`~vit_plugin.deploy.pipeline_steps.facts_of`.
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


def trace(
    model: Deployed, size: tuple[int, int] | None, batch: int | None = None
) -> ExportedProgram:
    """Trace the graph of the model.

    Args:
        model, size, batch: see :func:`export`.

    Raises:
        ConfigError: if the model has no such graph.
    """
    backbone = model.model.backbone
    # Axis -> dynamic dimension, as torch.export takes them, of both inputs.
    batch_axis: dict[int, Any] = {} if batch else {0: Dim('batch')}
    image_axes = dict(batch_axis)
    unit = model.unit
    # If the stride does not divide the unit, sizes of maps are rounded, and torch cannot see that
    # some of them are equal.
    rounded = bool(unit % model.stride)
    what = 'torch.export cannot trace this model'
    remedy = 'leave out the part of it that the cause names'
    if size is None:
        if rounded:
            image_axes |= dict.fromkeys((2, 3), Dim.AUTO(min=unit * model.min_units))
        else:
            rows, columns = (unit * Dim(name, min=model.min_units) for name in ('rows', 'columns'))
            image_axes |= {2: rows, 3: columns}
        what = 'The graph of this model depends on the size of the images'
        remedy = 'write a file for each size, with --img-size, or have keep_ratio=False in the test'
    example_size = size or sizes_to_try(model, None)[-1]
    # Not one image for any number: torch would take an axis of length 1 as constant.
    example = example_inputs(model, torch.zeros(batch or 2, backbone.in_channels, *example_size))
    shapes = (image_axes, batch_axis) if len(example) == 2 else (image_axes,)
    with_open_sizes = nullcontext() if size else open_sizes(model)
    as_config_error = rejecting(what, remedy, cause=named_line)
    with torch.no_grad(), precomputed(model, size), with_open_sizes, as_config_error:
        program = torch.export.export(model, example, dynamic_shapes=shapes)
        run = program.module()
        # The graph may have specialized to the example. With rounded sizes it also compares some of
        # them, which an ONNX file does not.
        for other in () if rounded and size is None else sizes_to_try(model, size):
            run(*example_inputs(model, torch.zeros(batch or 1, backbone.in_channels, *other)))
    return program


def example_inputs(model: Deployed, images: Tensor) -> tuple[Tensor, ...]:
    """Example inputs: images (B, C, H, W), and their sizes if the graph takes them.

    Each size is a pixel smaller than the previous one, so that the images have different padding.
    """
    if len(model.inputs) == 1:
        return (images,)
    padding = torch.arange(len(images))[:, None]
    return images, torch.tensor(images.shape[-2:]) - padding


def sizes_to_try(model: Deployed, size: tuple[int, int] | None) -> list[tuple[int, int]]:
    """The sizes to test: the fixed size, or several for a graph of all sizes."""
    if size:
        return [size]

    def side(strides: int) -> int:
        """The smallest side plus this many strides and pixels, rounded up to the unit.

        The extra pixels show sizes that are not multiples of the stride, if the unit allows them.
        """
        return model.unit * (model.min_units + math.ceil(strides * (model.stride + 1) / model.unit))

    # The smallest image, then landscapes and portraits of different rounding.
    return [(side(rows), side(columns)) for rows, columns in ((0, 0), (3, 1), (2, 7), (1, 2))]


def write_pt2(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = (),
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Write a ``torch.export`` archive. Returns a function that runs it.

    Raises:
        ConfigError: if the dtype is int8 or float16, which need ONNX.
    """
    if dtype in ('int8', 'float16'):
        raise ConfigError(f'--dtype {dtype} is written as .onnx, not {path.suffix}.')
    # torch's own writer aborts the process some time after it has met a full disk.
    archive = BytesIO()
    torch.export.save(program, archive)
    path.write_bytes(archive.getvalue())
    return torch.export.load(path).module()


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


def checking_finite(run: Run) -> Run:
    """Wrap a function that runs a file, and check that its outputs are finite.

    Raises:
        ConfigError: if they are not, which may happen in float16 with its small range.
    """

    def checked(*tensors: Tensor) -> Outputs:
        outputs = run(*tensors)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            if not output.isfinite().all():
                raise ConfigError(
                    'The file has outputs that are infinite or NaN, and nothing was written; '
                    'export in float32.'
                )
        return outputs

    return checked


def largest_difference(
    model: Deployed, run: Run, size: tuple[int, int] | None, batch: int | None = None
) -> float:
    """The largest difference of the outputs for batches of random images.

    See :meth:`Deployed.difference`. If scores of proposals tie, rounding decides which query starts
    from which proposal, and outputs differ without an error. So a difference is ignored if rounding
    errors of the images change the model's own outputs by more than a tenth of it.
    """
    differences = []
    counts = (batch,) if batch else COMPARED_BATCH_SIZES
    for count, side in product(counts, sizes_to_try(model, size)):
        tensors = example_inputs(
            model, 255 * torch.rand(count, model.model.backbone.in_channels, *side)
        )
        with torch.no_grad():
            wanted = model(*tensors)
            difference = model.difference(run(*tensors), wanted)
            if difference > FLOAT32_TOLERANCE and is_from_a_tie(model, tensors, wanted, difference):
                difference = 0.0
        differences.append(difference)
    return largest(differences)


def is_from_a_tie(
    model: Deployed, tensors: Sequence[Tensor], wanted: Outputs, difference: float
) -> bool:
    """Whether rounding errors of the images change the outputs by over a tenth of a difference."""
    images, *others = tensors
    rounded = (
        model(images * (1 + ROUNDING * torch.randn_like(images)), *others)
        for _ in range(ROUNDED_COPIES)
    )
    return any(10 * model.difference(outputs, wanted) > difference for outputs in rounded)
