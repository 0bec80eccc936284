"""Export a trained model to a file that runs without the framework."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import chain, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from vit_plugin.errors import ConfigError, MissingExtraError, first_line, needed_by
from vit_plugin.files.complete import replacing
from vit_plugin.models import VisionTransformer
from vit_plugin.passes.precompute import precomputed

from .deployed import Deployed, DeployedBoxes, Outputs
from .onnx_model import KEY

Run = Callable[..., Outputs]

# A float32 graph must equal the model. For other dtypes, the user decides which difference is
# acceptable.
FLOAT32_TOLERANCE = 1e-4
# A value from here on is kept in float32, since other images may have larger ones.
LARGEST_HALF = 65504 / 8


def export(
    model: Deployed,
    out: Path,
    size: tuple[int, int] | None,
    dtype: str = 'float32',
    reference: Deployed | None = None,
    sources: Sequence[str | Path] = (),
    facts: str = '',
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
        facts: what an ONNX file says of itself, see :func:`~vit_plugin.apps.onnx_model.facts_of`.

    Returns:
        The largest difference of the file from the reference, see :func:`largest_difference`.

    Raises:
        ConfigError: if the format does not support the model, dtype or size, or if the file cannot
            be written. Also if a float32 file differs from the reference.
    """
    backbone = model.model.backbone
    if size and isinstance(backbone, VisionTransformer):
        backbone.patch_embed.check_image_size(size)
    with replacing(out, sources) as path, _external_weights(path, out):
        run = WRITERS[out.suffix](trace(model, size), path, dtype, model.outputs, facts)
        with _one_sentence(
            f'The file that was written for {str(out)!r} does not run',
            'nothing was written; try the other format',
        ):
            difference = largest_difference(reference or model, run, size)
        if dtype == 'float16' and not math.isfinite(difference):
            raise ConfigError(
                f'The file that was written for {str(out)!r} has outputs that are infinite or '
                'NaN, and nothing was written; export in float32.'
            )
        if dtype == 'float32' and not difference <= FLOAT32_TOLERANCE:
            raise ConfigError(
                f'The file that was written for {str(out)!r} is off by {difference:.1e} of the '
                'largest value, and nothing was written; try the other format.'
            )
    return difference


def trace(model: Deployed, size: tuple[int, int] | None) -> ExportedProgram:
    """Trace the graph of the model for any number of images.

    Args:
        model, size: see :func:`export`.

    Raises:
        ConfigError: if the model has no such graph.
    """
    backbone = model.model.backbone
    dynamic: dict[int, Any] = {0: Dim('batch')}
    unit = model.unit
    what, remedy = (
        'torch.export cannot trace this model',
        'leave out the part of it that the cause names',
    )
    if size is None:
        dynamic |= {
            2: unit * Dim('rows', min=model.least),
            3: unit * Dim('columns', min=model.least),
        }
        what = (
            '--dynamic-size: the graph of this model depends on the size of the images, as with '
            "encoder=dict(window=...) or pos_embed=dict(interpolate_mode='bicubic_dinov2')"
        )
        remedy = 'write a file for each size, with --img-size'
    example_size = size or ((model.least + 1) * unit, (model.least + 2) * unit)
    example = inputs(model, torch.zeros(2, backbone.in_channels, *example_size))
    shapes = (dynamic, {0: dynamic[0]})[: len(example)]
    with torch.no_grad(), precomputed(model, size), _one_sentence(what, remedy):
        program = torch.export.export(model, example, dynamic_shapes=shapes)
        run = program.module()
        # The graph may have taken what the example has for a constant.
        for other in sizes_to_try(model, size):
            run(*inputs(model, torch.zeros(1, backbone.in_channels, *other)))
    return program


def inputs(model: Deployed, images: Tensor) -> tuple[Tensor, ...]:
    """The inputs of a graph: images (B, C, H, W), and for a detector their sizes.

    Each size is a pixel smaller than the one before.
    """
    padding = torch.arange(len(images))[:, None]
    return (images, torch.tensor(images.shape[-2:]) - padding)[: len(model.inputs)]


def sizes_to_try(model: Deployed, size: tuple[int, int] | None) -> list[tuple[int, int]]:
    """The sizes to test: this size, or some sizes for a graph of all sizes."""
    unit, least = model.unit, model.least
    if size:
        return [size]
    more = ((0, 0), (3, 1), (2, 7))
    return [(unit * (least + rows), unit * (least + columns)) for rows, columns in more]


def write_pt2(
    program: ExportedProgram, path: Path, dtype: str, outputs: Sequence[str] = (), facts: str = ''
) -> Run:
    """Write a ``torch.export`` archive. Returns a function that runs it.

    Raises:
        ConfigError: if the dtype is int8 or float16, which need ONNX.
    """
    if dtype in ('int8', 'float16'):
        raise ConfigError(f'--dtype {dtype} is written as .onnx, not {path.suffix}.')
    # Since torch's own writer ends the process some time after it has met a full disk.
    archive = BytesIO()
    torch.export.save(program, archive)
    path.write_bytes(archive.getbuffer())
    return torch.export.load(path).module()


def write_onnx(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = ('logits',),
    facts: str = '',
) -> Run:
    """Write ONNX. Return a function that runs it in onnxruntime.

    int8 scales activations at run time.

    Raises:
        ConfigError: if the dtype is bfloat16, which onnxruntime lacks on a CPU, or if ONNX does not
            support the graph.
        MissingExtraError: if onnx, onnxscript or onnxruntime is not installed.
    """
    if dtype == 'bfloat16':
        raise ConfigError(
            '--dtype bfloat16 is written as .pt2: onnxruntime does not compute in it on a CPU.'
        )
    with needed_by('Export to ONNX'):
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    with _one_sentence('This model cannot be written as ONNX', 'write a .pt2 file'):
        names = DeployedBoxes.inputs[: len(program.example_inputs[0])]
        graph: Any = torch.onnx.export(
            program, dynamo=True, verbose=False, input_names=names, output_names=list(outputs)
        )
    if facts:
        graph.model.metadata_props[KEY] = facts
    if dtype == 'int8':
        write_int8(graph.model_proto, path)
    elif dtype == 'float16':
        with _one_sentence('This graph cannot be written in float16', 'write it in float32'):
            images, *sizes = program.example_inputs[0]
            examples = dict(zip(names, (255 * torch.rand_like(images), *sizes), strict=True))
            write_half(graph.model_proto, path, examples)
    else:
        graph.save(path)
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])

    def run(*tensors: Tensor) -> Outputs:
        arrays = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
        found = tuple(map(torch.from_numpy, session.run(None, arrays)))
        return found if len(outputs) > 1 else found[0]

    return run


def write_int8(proto: Any, path: Path) -> None:
    """Write an ONNX graph whose products of matrices are int8, with a scale per channel.

    Weights have 7 bits, because pairs of products overflow 16 bits on processors without VNNI. The
    classifier (a Gemm) and the convolutions are not quantised.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    del proto.graph.value_info[:]  # of the weights that the quantiser is about to transpose
    quantize_dynamic(
        proto,
        path,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=['MatMul'],
    )


def write_half(proto: Any, path: Path, inputs: Mapping[str, Tensor]) -> None:
    """Write an ONNX graph in float16, but for inputs, outputs and values near the end of its range.

    Args:
        proto: the graph in float32.
        path: the file to write.
        inputs: for these, all values of the graph are computed, to find those beyond
            ``LARGEST_HALF``.
    """
    import onnx
    import onnxruntime
    from onnxruntime.transformers.float16 import convert_float_to_float16

    whole = onnx.ModelProto()
    whole.CopyFrom(proto)
    outputs = {output.name for output in proto.graph.output}
    values = [name for node in proto.graph.node for name in node.output if name]
    whole.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in values if name not in outputs
    )
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), providers=['CPUExecutionProvider']
    )
    names = [output.name for output in session.get_outputs()]
    arrays = {name: value.numpy() for name, value in inputs.items()}
    found = dict(zip(names, session.run(names, arrays), strict=True))
    large = {
        name
        for name, value in found.items()
        if value.dtype == 'float32' and value.size and abs(value).max() > LARGEST_HALF
    }
    kept = [node.name for node in proto.graph.node if large & {*node.input, *node.output}]
    half = convert_float_to_float16(proto, keep_io_types=True, node_block_list=kept)
    # The converter casts a value once for each node that takes it, under one name.
    once = {node.output[0]: node for node in reversed(half.graph.node)}
    nodes = [node for node in half.graph.node if once[node.output[0]] is node]
    del half.graph.node[:]
    half.graph.node.extend(nodes)
    onnx.save(half, path)


WRITERS = {'.pt2': write_pt2, '.onnx': write_onnx}


def largest_difference(model: Deployed, run: Run, size: tuple[int, int] | None) -> float:
    """The largest difference of the outputs for one, two and five random images.

    See :meth:`Deployed.difference`.
    """
    differences = []
    for batch, side in product((1, 2, 5), sizes_to_try(model, size)):
        tensors = inputs(model, 255 * torch.rand(batch, model.model.backbone.in_channels, *side))
        with torch.no_grad():
            differences.append(model.difference(run(*tensors), model(*tensors)))
    return max(differences)


@contextmanager
def _external_weights(path: Path, out: Path) -> Iterator[None]:
    """Keep the second file that torch's exporter writes for weights above ONNX's limit of 2 GB."""
    written, target = (
        file.with_name(f'{file.name}.data') for file in (path, Path(os.path.realpath(out)))
    )
    try:
        yield
        if written.exists():
            import onnx  # which has written it

            graph = onnx.load(path, load_external_data=False)
            for entry in chain.from_iterable(
                tensor.external_data for tensor in graph.graph.initializer
            ):
                if entry.key == 'location':
                    entry.value = target.name
            onnx.save(graph, path)
            os.replace(written, target)
    finally:
        written.unlink(missing_ok=True)


@contextmanager
def _one_sentence(what: str, remedy: str) -> Iterator[None]:
    """Turn any error of an exporter or runtime into one sentence."""
    try:
        yield
    except (ConfigError, MissingExtraError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise ConfigError(
            f'{what} ({type(error).__name__}: {first_line(error)}); {remedy}.'
        ) from error
