"""A traced graph as an ONNX file, in float32, float16 or int8."""

import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram

from vit_plugin.errors import ConfigError, named_line, needed_by, rejecting

from .deployed_module import INPUTS, Outputs
from .runtimes import Arrays, InOnnxruntime, Runtime

Run = Callable[..., Outputs]  # runs a written file: tensors -> its outputs

FLOAT, FLOAT16 = 1, 10  # TensorProto's numbers of the types
# A tensor with values above this one stays in float32. It is an eighth of float16's maximum, since
# other images may cause larger values.
MAX_SAFE_FLOAT16 = 65504 / 8


def write_onnx(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = ('logits',),
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Write ONNX. Return a function that runs it in onnxruntime.

    In int8, activations are quantized when the file runs (dynamic quantization).

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
        import onnxruntime  # noqa: F401  runs the file
        import onnxscript  # noqa: F401  torch's exporter needs it
    names = INPUTS[: len(program.example_inputs[0])]
    what = 'This model cannot be written as ONNX'
    with rejecting(what, 'write a .pt2 file', cause=named_line):
        graph: Any = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=list(outputs),
            custom_translation_table={operator.floordiv: floor_division},
        )
    # The exporter records the origin of each node, with local paths.
    for node in graph.model.graph.all_nodes():
        node.metadata_props.clear()
    graph.model.metadata_props.update(metadata)
    if dtype == 'int8':
        write_int8(graph.model_proto, path)
    elif dtype == 'float16':
        images, *sizes = program.example_inputs[0]
        examples = dict(zip(names, (255 * torch.rand_like(images), *sizes), strict=True))
        what = 'This graph cannot be written in float16'
        with rejecting(what, 'write it in float32', cause=named_line):
            write_float16(graph.model_proto, path, examples)
    else:
        graph.save(path)
    return tensor_function(InOnnxruntime(path))


def tensor_function(runtime: Runtime) -> Run:
    """A function that runs a file on tensors."""

    def run(*tensors: Tensor) -> Outputs:
        arrays = [tensor.numpy() for tensor in tensors]
        results = runtime(dict(zip(runtime.inputs, arrays, strict=True)))
        outputs = tuple(map(torch.from_numpy, results))
        return outputs if len(outputs) > 1 else outputs[0]

    return run


def floor_division(self: Any, other: Any) -> Any:
    """``self // other`` of sizes, rounded down. torch's exporter has ONNX's ``Div``: toward 0."""
    from onnxscript import opset18 as onnx

    return onnx.Div(onnx.Sub(self, onnx.Mod(self, other)), other)


def write_int8(proto: Any, path: Path) -> None:
    """Write an ONNX graph whose products of matrices are int8 (dynamic quantization).

    Each channel of a weight has its own scale. Weights have 7 bits, because sums of two products
    overflow 16 bits on processors without VNNI.
    The classifier (a Gemm) and the convolutions are not quantized.
    """
    from onnxruntime.quantization import QuantType, quant_utils, quantize_dynamic

    # torch's exporter has optimized the graph and inferred its shapes. The quantizer warns unless
    # the graph says so.
    quant_utils.add_pre_process_metadata(proto)
    del proto.graph.value_info[:]  # shapes of weights that the quantizer transposes
    quantize_dynamic(
        proto,
        path,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=['MatMul'],
    )


def write_float16(proto: Any, path: Path, inputs: Mapping[str, Tensor]) -> None:
    """Write an ONNX graph in float16, except for inputs, outputs and unsuitable tensors.

    Unsuitable are values near the end of float16's range, and integers in float arithmetic.

    Args:
        proto: the graph in float32.
        path: the file to write.
        inputs: example inputs, to find tensors with values beyond ``MAX_SAFE_FLOAT16``.
    """
    import onnx
    import onnxruntime
    from onnxruntime.transformers.float16 import convert_float_to_float16

    # Run a copy of the graph that outputs all its values.
    with_all_values = onnx.ModelProto()
    with_all_values.CopyFrom(proto)
    outputs = {output.name for output in proto.graph.output}
    value_names = [name for node in proto.graph.node for name in node.output if name]
    with_all_values.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in value_names if name not in outputs
    )
    session = onnxruntime.InferenceSession(
        with_all_values.SerializeToString(), providers=['CPUExecutionProvider']
    )
    names = [output.name for output in session.get_outputs()]
    arrays = {name: value.numpy() for name, value in inputs.items()}
    values = dict(zip(names, session.run(names, arrays), strict=True))
    large = {
        name
        for name, value in values.items()
        if value.dtype == 'float32' and value.size and abs(value).max() > MAX_SAFE_FLOAT16
    }
    unsuitable = large | integers_in_float(proto.graph.node, arrays | values)
    float32_nodes = [
        node.name for node in proto.graph.node if unsuitable & {*node.input, *node.output}
    ]
    original_nodes = {node.name for node in proto.graph.node}
    half = convert_float_to_float16(proto, keep_io_types=True, node_block_list=float32_nodes)
    nodes = remove_superfluous_casts(half.graph.node, original_nodes, outputs)
    del half.graph.node[:]
    half.graph.node.extend(nodes)
    onnx.save(half, path)


def remove_superfluous_casts(
    nodes: Sequence[Any], original_names: Collection[str], outputs: Collection[str]
) -> list[Any]:
    """Remove superfluous casts of the float16 converter.

    It casts a value once for each consumer, under the same name, and from float32 to float16 and
    back between two nodes in float32, which defeats their purpose.

    Args:
        nodes: nodes of its graph.
        original_names: names of the nodes before the conversion.
        outputs: names of the outputs of the graph.
    """
    # If several nodes make the same name, the first counts.
    made_by = {name: node for node in reversed(nodes) for name in node.output}
    casts = {name: node for name, node in made_by.items() if node.name not in original_names}
    cast_type = {name: next(entry.i for entry in node.attribute) for name, node in casts.items()}
    # A value that was cast to float16 and back -> the same value before these casts.
    uncast = {
        name: casts[node.input[0]].input[0]
        for name, node in casts.items()
        if cast_type[name] == FLOAT and cast_type.get(node.input[0]) == FLOAT16
    }
    for name, node in made_by.items():
        if name in uncast:
            node.input[:] = [uncast[name]]
        else:
            node.input[:] = [uncast.get(source, source) for source in node.input]
    # Keep the nodes that the outputs need.
    needed: set[int] = set()
    pending = [*outputs]
    while pending:
        node = made_by.get(pending.pop())
        if node is not None and id(node) not in needed:
            needed.add(id(node))
            pending += node.input
    return [node for node in nodes if id(node) in needed]


def integers_in_float(nodes: Sequence[Any], values: Arrays) -> set[str]:
    """Names of float tensors that are computed from integers and converted back to integers.

    An example is the quotient of two positions: float16 rounds integers above 2048.

    Args:
        nodes: nodes of a graph, in the order of computation.
        values: name -> value.
    """

    def of_kind(dtype_kind: str, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in values and values[name].dtype.kind == dtype_kind}

    from_integers: set[str] = set()
    for node in nodes:
        is_cast = node.op_type == 'Cast' and of_kind('i', node.input)
        if is_cast or from_integers & {*node.input}:
            from_integers |= of_kind('f', node.output)
    to_integers: set[str] = set()
    for node in reversed(nodes):
        is_cast = node.op_type == 'Cast' and of_kind('i', node.output)
        if is_cast or to_integers & {*node.output}:
            to_integers |= of_kind('f', node.input)
    return from_integers & to_integers


@contextmanager
def external_weights(path: Path, out: Path, sources: Sequence[str | Path]) -> Iterator[None]:
    """Move the second file that torch's exporter writes for weights above ONNX's limit of 2 GB.

    It is named ``OUT.data``. No file that was read has such a name, so ``sources`` is unused.
    """
    written = path.with_name(f'{path.name}.data')
    target = Path(f'{os.path.realpath(out)}.data')
    try:
        yield
        if written.exists():
            import onnx  # onnx wrote the file

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
