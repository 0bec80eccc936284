"""A trained model with its preprocessing, as a graph: images in, classes or maps out."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .input_sizes import padding_of

INPUTS = ('images', 'sizes')  # names of a graph's inputs; without padding, only the first
Outputs = Tensor | tuple[Tensor, ...]


class Deployed(nn.Module):
    """Preprocessing and network in one module; the network computes in ``dtype``.

    Its forward takes images (B, C, H, W), float32 from 0 to 255, in the network's channel order
    (RGB). If the preprocessor pads images, it also takes their heights and widths (B, 2) in int64,
    and replaces the pixels outside by the padding value.

    Attributes:
        inputs, outputs: the names of the inputs and outputs.
        stride: pixels per patch of the last feature map.
        unit, min_units: sides of images must be multiples of ``unit``, and at least
            ``min_units * unit``.
    """

    outputs: ClassVar[tuple[str, ...]]

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        mean, std = normalization_of(model)
        # Not named `mean`: onnxscript uses that name for a mean that it folds into a constant.
        self.register_buffer('image_mean', mean.clone())
        self.register_buffer('image_std', std.clone())
        self.model, self.dtype = model.to(dtype), dtype
        self.padding = padding_of(model)
        self.stride = model.backbone.strides[-1]
        self.unit = math.lcm(self.stride, self.padding.unit)

    @property
    def inputs(self) -> tuple[str, ...]:
        return INPUTS if self.padding.adds_pixels else INPUTS[:1]

    @property
    def min_units(self) -> int:
        # At least two rows of patches: torch.export treats a side of 1 as constant.
        return max(2, math.ceil(2 * self.stride / self.unit))

    def normalized(self, images: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Images -> the input of the network."""
        pixels = ((images - self.image_mean) / self.image_std).to(self.dtype)
        if sizes is None:
            return pixels
        # Outside of an image's own size, use the padding value. Products of masks, since more
        # runtimes support them than booleans.
        rows, columns = (
            (torch.arange(images.shape[2 + axis], device=images.device) < sizes[:, axis, None]).to(
                pixels
            )
            for axis in (0, 1)
        )
        inner = (rows[:, :, None] * columns[:, None])[:, None]  # (B, 1, H, W)
        return pixels * inner + self.padding.value * (1 - inner)

    def features(self, images: Tensor, sizes: Tensor | None = None) -> Any:
        """Images -> the input of the head."""
        return self.model.extract_feat(self.normalized(images, sizes))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The largest difference of outputs, relative to the largest value of each."""
        return largest(
            relative_difference(actual, expected)
            for actual, expected in zip(_as_tuple(found), _as_tuple(wanted), strict=True)
        )


class DeployedPlainClassifier(Deployed):
    """A plain classifier of ``create_model`` -> logits (B, classes), without a framework."""

    outputs = ('logits',)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(self.normalized(images)).float()


class DeployedFeatures(DeployedPlainClassifier):
    """A plain classifier without its head -> features (B, C)."""

    outputs = ('features',)


def normalization_of(model: nn.Module) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (C, 1, 1) of pixels from 0 to 255, in the network's channels."""
    preprocessor = getattr(model, 'data_preprocessor', None)
    if preprocessor is None:
        pixels = model.data_config
        mean, std = (255 * torch.tensor(pixels[key])[:, None, None] for key in ('mean', 'std'))
        return mean, std
    mean = getattr(preprocessor, 'mean', torch.zeros(1, 1, 1))
    return mean, getattr(preprocessor, 'std', torch.ones(1, 1, 1))


def _as_tuple(outputs: Outputs) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)


def largest(differences: Iterable[float]) -> float:
    """The largest difference, or NaN if one is. Python's ``max`` keeps only a NaN that is first."""
    values = [*differences]
    return math.nan if any(map(math.isnan, values)) else max(values)


def relative_difference(found: Tensor, wanted: Tensor) -> float:
    """The largest difference from the expected values, relative to their maximum.

    Infinite if shapes differ.
    """
    if found.shape != wanted.shape:
        return math.inf
    if not wanted.numel():
        return 0.0
    return ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)).item()
