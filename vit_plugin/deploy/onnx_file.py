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

Run = Callable[..., Outputs]

FLOAT, FLOAT16 = 1, 10  # TensorProto's numbers of the types
# From this value on, a tensor stays in float32, since other images may have larger ones.
LARGEST_HALF = 65504 / 8


def write_onnx(
    program: ExportedProgram,
    path: Path,
    dtype: str,
    outputs: Sequence[str] = ('logits',),
    metadata: Mapping[str, str] = MappingProxyType({}),
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
            write_half(graph.model_proto, path, examples)
    else:
        graph.save(path)
    return run_in(InOnnxruntime(path))


def run_in(runtime: Runtime) -> Run:
    """A function that runs a file on tensors."""

    def run(*tensors: Tensor) -> Outputs:
        arrays = [tensor.numpy() for tensor in tensors]
        found = runtime(dict(zip(runtime.inputs, arrays, strict=True)))
        outputs = tuple(map(torch.from_numpy, found))
        return outputs if len(outputs) > 1 else outputs[0]

    return run


def floor_division(self: Any, other: Any) -> Any:
    """``self // other`` of sizes, rounded down. torch's exporter has ONNX's ``Div``: toward 0."""
    from onnxscript import opset18 as onnx

    return onnx.Div(onnx.Sub(self, onnx.Mod(self, other)), other)


def write_int8(proto: Any, path: Path) -> None:
    """Write an ONNX graph whose products of matrices are int8, with a scale per channel.

    Weights have 7 bits, because sums of two products overflow 16 bits on processors without VNNI.
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


def write_half(proto: Any, path: Path, inputs: Mapping[str, Tensor]) -> None:
    """Write an ONNX graph in float16, except for inputs, outputs and unsuitable tensors.

    These are values near the end of the range, and integers in float arithmetic.

    Args:
        proto: the graph in float32.
        path: the file to write.
        inputs: example inputs, to find tensors with values beyond ``LARGEST_HALF``.
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
    exact = large | integers_in_float(proto.graph.node, arrays | found)
    kept = [node.name for node in proto.graph.node if exact & {*node.input, *node.output}]
    own = {node.name for node in proto.graph.node}
    half = convert_float_to_float16(proto, keep_io_types=True, node_block_list=kept)
    nodes = without_detours(half.graph.node, own, outputs)
    del half.graph.node[:]
    half.graph.node.extend(nodes)
    onnx.save(half, path)


def without_detours(
    nodes: Sequence[Any], own: Collection[str], outputs: Collection[str]
) -> list[Any]:
    """Remove superfluous casts of the float16 converter.

    It casts a value once for each consumer, under the same name, and from float32 to float16 and
    back between two nodes in float32, which defeats their purpose.

    Args:
        nodes: nodes of its graph.
        own: names of the original nodes.
        outputs: names of the outputs of the graph.
    """
    made_by = {name: node for node in reversed(nodes) for name in node.output}
    casts = {name: node for name, node in made_by.items() if node.name not in own}
    to = {name: next(entry.i for entry in node.attribute) for name, node in casts.items()}
    whole = {
        name: casts[node.input[0]].input[0]
        for name, node in casts.items()
        if to[name] == FLOAT and to.get(node.input[0]) == FLOAT16
    }
    for name, node in made_by.items():
        inputs = [whole[name]] if name in whole else [whole.get(one, one) for one in node.input]
        node.input[:] = inputs
    kept: set[int] = set()
    wanted = [*outputs]
    while wanted:
        node = made_by.get(wanted.pop())
        if node is not None and id(node) not in kept:
            kept.add(id(node))
            wanted += node.input
    return [node for node in nodes if id(node) in kept]


def integers_in_float(nodes: Sequence[Any], values: Arrays) -> set[str]:
    """Names of float tensors that are computed from integers and converted back to integers.

    An example is the quotient of two positions, which float16 would round from 2048 on.

    Args:
        nodes: nodes of a graph, in the order of computation.
        values: name -> value.
    """

    def are(kind: str, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in values and values[name].dtype.kind == kind}

    from_integers: set[str] = set()
    for node in nodes:
        cast = node.op_type == 'Cast' and are('i', node.input)
        if cast or from_integers & {*node.input}:
            from_integers |= are('f', node.output)
    to_integers: set[str] = set()
    for node in reversed(nodes):
        cast = node.op_type == 'Cast' and are('i', node.output)
        if cast or to_integers & {*node.output}:
            to_integers |= are('f', node.input)
    return from_integers & to_integers


@contextmanager
def external_weights(path: Path, out: Path, sources: Sequence[str | Path]) -> Iterator[None]:
    """Keep the second file that torch's exporter writes for weights above ONNX's limit of 2 GB.

    Its suffix differs from that of any source.
    """
    written, target = (
        file.with_name(f'{file.name}.data') for file in (path, Path(os.path.realpath(out)))
    )
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
