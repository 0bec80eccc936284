"""A trained classifier as a file that runs without the framework."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.weights.load import load_trained

Run = Callable[[Tensor], Tensor]

# As a float32 graph is the model itself; what the others may differ by is for the user to judge.
FLOAT32_TOLERANCE = 1e-4
INT8 = 'int8'
DTYPES = ('float32', 'bfloat16', INT8)


class Deployed(nn.Module):
    """Preprocessing and network in one.

    Args:
        model: a classifier of MMPretrain.
        dtype: in which the network computes.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        preprocessor = model.data_preprocessor
        ones = torch.ones(1, 1, 1)
        # Not `mean` alone: onnxscript gives that name to a mean that it folds into a constant.
        self.register_buffer('image_mean', getattr(preprocessor, 'mean', 0 * ones).clone())
        self.register_buffer('image_std', getattr(preprocessor, 'std', ones).clone())
        self.model, self.dtype = model.to(dtype), dtype

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, C, H, W), float32 of 0 to 255, channels as the network sees them (RGB) -> logits (B, classes)."""
        images = ((images - self.image_mean) / self.image_std).to(self.dtype)
        return self.model.head(self.model.extract_feat(images)).float()


def load_deployed(cfg: Config, checkpoint: str, dtype: str = 'float32') -> Deployed:
    """The classifier of a config with the weights of a checkpoint, in eval mode.

    Raises:
        ConfigError: for another kind of model, or a checkpoint that is not of this one.
    """
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    preprocessor = dict(cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor') or {})
    preprocessor.setdefault('type', 'mmpretrain.ClsDataPreprocessor')
    model = MODELS.build(dict(cfg.model, data_preprocessor=preprocessor))
    if not (hasattr(model, 'extract_feat') and hasattr(model, 'head')):
        raise ConfigError(f'model: {type(model).__name__} is no classifier, and only those can be exported.')
    load_trained(model, checkpoint)
    return Deployed(model, torch.bfloat16 if dtype == 'bfloat16' else torch.float32).eval().requires_grad_(False)


def trace(model: Deployed, channels: int, size: tuple[int, int] | None) -> ExportedProgram:
    """The model's graph for any number of images.

    Args:
        model: the classifier.
        channels: of the images.
        size: height and width of the images; None for all sizes of whole patches, two by two at least.

    Raises:
        ConfigError: if it shall be for all sizes, and the graph of this model depends on them.
    """
    stride, dynamic = model.model.backbone.patch_embed.stride, {0: Dim('batch')}
    if size is None:
        dynamic |= {2: stride * Dim('rows', min=2), 3: stride * Dim('columns', min=2)}
    example = torch.zeros(2, channels, *(size or (3 * stride, 4 * stride)))
    program = torch.export.export(model, (example, ), dynamic_shapes=(dynamic, ))
    if size is None:
        run = program.module()
        try:
            for other in sizes_to_try(model, size):
                run(torch.zeros(1, channels, *other))
        except AssertionError as error:
            raise ConfigError('--dynamic-size: the graph of this model depends on the size, as with windows, relative '
                              'positions and merging of tokens; write a file for each size without it.') from error
    return program


def sizes_to_try(model: Deployed, size: tuple[int, int] | None) -> list[tuple[int, int]]:
    """That size, or some of those that a graph for all of them has to do."""
    stride = model.model.backbone.patch_embed.stride
    return [size] if size else [(stride * rows, stride * columns) for rows, columns in ((2, 2), (5, 3), (4, 9))]


def write_pt2(program: ExportedProgram, path: Path, dtype: str) -> Run:
    """Write a ``torch.export`` archive, and give what runs it.

    Raises:
        ConfigError: for int8, which is written as ONNX.
    """
    if dtype == INT8:
        raise ConfigError(f'--dtype int8 is written as .onnx, not {path.suffix}.')
    torch.export.save(program, path)
    return torch.export.load(path).module()


def write_onnx(program: ExportedProgram, path: Path, dtype: str) -> Run:
    """Write ONNX, int8 with scales of the activations found at run time, and give what runs it in onnxruntime.

    Raises:
        ConfigError: for bfloat16, in which onnxruntime does not compute on a CPU.
        MissingExtraError: without onnx, onnxscript and onnxruntime.
    """
    if dtype == 'bfloat16':
        raise ConfigError('--dtype bfloat16 is written as .pt2: onnxruntime does not compute in it on a CPU.')
    with needed_by('Export to ONNX'):
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
        from onnxruntime.quantization import QuantType, quantize_dynamic
    graph = torch.onnx.export(program, dynamo=True, verbose=False, input_names=['images'], output_names=['logits'])
    if dtype == INT8:
        whole = graph.model_proto
        del whole.graph.value_info[:]  # of the weights that the quantiser is about to transpose
        # 7 bits of weight, since pairs of products overflow 16 bits on processors without VNNI; the classifier, a Gemm,
        # and the convolutions stay as they are.
        quantize_dynamic(whole, path, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,
                         op_types_to_quantize=['MatMul'])
    else:
        graph.save(path)
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    return lambda images: torch.from_numpy(session.run(None, {'images': images.numpy()})[0])


WRITERS = {'.pt2': write_pt2, '.onnx': write_onnx}


def largest_difference(model: Deployed, run: Run, channels: int, size: tuple[int, int] | None) -> float:
    """Largest difference of the logits of one, two and five random images, relative to the largest logit."""
    differences = []
    for batch, side in product((1, 2, 5), sizes_to_try(model, size)):
        images = 255 * torch.rand(batch, channels, *side)
        with torch.no_grad():
            wanted = model(images)
            differences.append(((run(images) - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)).item())
    return max(differences)
