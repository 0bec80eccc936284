"""Export a trained classifier to a file that runs without the framework."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from io import BytesIO
from itertools import chain, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vit_plugin.errors import ConfigError, MissingExtraError, first_line, needed_by
from vit_plugin.files.complete import replacing
from vit_plugin.models import TimmBackbone, VisionTransformer
from vit_plugin.passes.precompute import precomputed

Run = Callable[[Tensor], Tensor]

# A float32 graph must equal the model. For other dtypes, the user decides which difference is acceptable.
FLOAT32_TOLERANCE = 1e-4


class Deployed(nn.Module):
    """Preprocessing and network, a classifier of MMPretrain in this dtype, in one module."""

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        preprocessor = model.data_preprocessor
        ones = torch.ones(1, 1, 1)
        # Not `mean` alone: onnxscript uses that name for a mean that it folds into a constant.
        self.register_buffer('image_mean', getattr(preprocessor, 'mean', 0 * ones).clone())
        self.register_buffer('image_std', getattr(preprocessor, 'std', ones).clone())
        self.model, self.dtype = model.to(dtype), dtype

    @classmethod
    def of(cls, model: nn.Module, dtype: str = 'float32') -> 'Deployed':
        """A copy of a trained model to export, in eval mode.

        Raises:
            ConfigError: if the model is not a classifier with one of our backbones.
        """
        if not (hasattr(model, 'extract_feat') and hasattr(model, 'head')):
            raise ConfigError(f'model: {type(model).__name__} is not a classifier, and only those can be exported.')
        if not isinstance(model.backbone, (TimmBackbone, VisionTransformer)):
            raise ConfigError(f'model.backbone: {type(model.backbone).__name__} is not a vit_plugin.VisionTransformer '
                              'or vit_plugin.TimmBackbone, and only those can be exported.')
        network = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
        return cls(deepcopy(model), network).eval().requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W), float32 from 0 to 255, in the network's channel order (RGB) -> logits (B, classes)."""
        images = ((images - self.image_mean) / self.image_std).to(self.dtype)
        return self.model.head(self.model.extract_feat(images)).float()


def export(model: Deployed, out: Path, size: tuple[int, int] | None, dtype: str = 'float32',
           reference: Deployed | None = None, sources: Sequence[str | Path] = ()) -> float:
    """Write a classifier to a file, in the format of its suffix, and run the file.

    Args:
        model: the classifier.
        out: the file to write. After an error it is unchanged.
        size: height and width of the images. None means all sizes of complete patches, at least two by two.
        dtype: ``'float32'``, ``'bfloat16'`` or ``'int8'``.
        reference: the file is compared with this module. Default: the model.
        sources: files that were read. ``out`` must not be one of them.

    Returns:
        The largest difference of the file from the reference, see :func:`largest_difference`.

    Raises:
        ConfigError: if the format does not support the model, dtype or size, or if the file cannot be written. Also if
            a float32 file differs from the reference.
    """
    backbone = model.model.backbone
    if size and isinstance(backbone, VisionTransformer):
        backbone.patch_embed.check_image_size(size)
    with replacing(out, sources) as path, _external_weights(path, out):
        run = WRITERS[out.suffix](trace(model, size), path, dtype)
        with _one_sentence(f'The file that was written for {str(out)!r} does not run',
                           'nothing was written; try the other format'):
            difference = largest_difference(reference or model, run, size)
        if dtype == 'float32' and not difference <= FLOAT32_TOLERANCE:
            raise ConfigError(f'The file that was written for {str(out)!r} is off by {difference:.1e} of the largest '
                              'logit, and nothing was written; try the other format.')
    return difference


def trace(model: Deployed, size: tuple[int, int] | None) -> ExportedProgram:
    """Trace the graph of the model for any number of images.

    Args:
        model, size: see :func:`export`.

    Raises:
        ConfigError: if the model has no such graph.
    """
    backbone, dynamic = model.model.backbone, {0: Dim('batch')}
    stride = backbone.strides[-1]
    what, remedy = 'torch.export cannot trace this model', 'leave out the part of it that the cause names'
    if size is None:
        dynamic |= {2: stride * Dim('rows', min=2), 3: stride * Dim('columns', min=2)}
        what = ('--dynamic-size: the graph of this model depends on the size of the images, as with '
                "encoder=dict(window=...) or pos_embed=dict(interpolate_mode='bicubic_dinov2')")
        remedy = 'write a file for each size, with --size'
    example = torch.zeros(2, backbone.in_channels, *(size or (3 * stride, 4 * stride)))
    with torch.no_grad(), precomputed(model, size), _one_sentence(what, remedy):
        program = torch.export.export(model, (example, ), dynamic_shapes=(dynamic, ))
        run = program.module()
        for other in sizes_to_try(model, size):  # the graph may have taken what the example has for a constant
            run(torch.zeros(1, backbone.in_channels, *other))
    return program


def sizes_to_try(model: Deployed, size: tuple[int, int] | None) -> list[tuple[int, int]]:
    """The sizes to test: this size, or some sizes for a graph of all sizes."""
    stride = model.model.backbone.strides[-1]
    return [size] if size else [(stride * rows, stride * columns) for rows, columns in ((2, 2), (5, 3), (4, 9))]


def write_pt2(program: ExportedProgram, path: Path, dtype: str) -> Run:
    """Write a ``torch.export`` archive. Returns a function that runs it.

    Raises:
        ConfigError: if the dtype is int8, which needs ONNX.
    """
    if dtype == 'int8':
        raise ConfigError(f'--dtype int8 is written as .onnx, not {path.suffix}.')
    archive = BytesIO()  # since torch's own writer ends the process some time after it has met a full disk
    torch.export.save(program, archive)
    path.write_bytes(archive.getbuffer())
    return torch.export.load(path).module()


def write_onnx(program: ExportedProgram, path: Path, dtype: str) -> Run:
    """Write ONNX. Returns a function that runs it in onnxruntime. int8 scales its activations at run time.

    Raises:
        ConfigError: if the dtype is bfloat16, which onnxruntime lacks on a CPU, or if ONNX does not support the graph.
        MissingExtraError: if onnx, onnxscript or onnxruntime is not installed.
    """
    if dtype == 'bfloat16':
        raise ConfigError('--dtype bfloat16 is written as .pt2: onnxruntime does not compute in it on a CPU.')
    with needed_by('Export to ONNX'):
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
        from onnxruntime.quantization import QuantType, quantize_dynamic
    with _one_sentence('This model cannot be written as ONNX', 'write a .pt2 file'):
        graph: Any = torch.onnx.export(program, dynamo=True, verbose=False, input_names=['images'],
                                       output_names=['logits'])
    if dtype == 'int8':
        proto = graph.model_proto
        del proto.graph.value_info[:]  # of the weights that the quantiser is about to transpose
        # Weights have 7 bits, because pairs of products overflow 16 bits on processors without VNNI. The classifier (a
        # Gemm) and the convolutions are not quantised.
        quantize_dynamic(proto, path, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,
                         op_types_to_quantize=['MatMul'])
    else:
        graph.save(path)
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    return lambda images: torch.from_numpy(session.run(None, {'images': images.numpy()})[0])


WRITERS = {'.pt2': write_pt2, '.onnx': write_onnx}


def largest_difference(model: Deployed, run: Run, size: tuple[int, int] | None) -> float:
    """Largest difference of the logits of one, two and five random images, relative to the largest logit."""
    differences = []
    for batch, side in product((1, 2, 5), sizes_to_try(model, size)):
        images = 255 * torch.rand(batch, model.model.backbone.in_channels, *side)
        with torch.no_grad():
            wanted = model(images)
            differences.append(((run(images) - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)).item())
    return max(differences)


@contextmanager
def _external_weights(path: Path, out: Path) -> Iterator[None]:
    """Keep the second file that torch's exporter writes for weights above ONNX's limit of 2 GB."""
    written, target = (file.with_name(f'{file.name}.data') for file in (path, Path(os.path.realpath(out))))
    try:
        yield
        if written.exists():
            import onnx  # which has written it
            graph = onnx.load(path, load_external_data=False)
            for entry in chain.from_iterable(tensor.external_data for tensor in graph.graph.initializer):
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
        raise ConfigError(f'{what} ({type(error).__name__}: {first_line(error)}); {remedy}.') from error
