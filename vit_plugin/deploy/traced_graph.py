"""Trace a deployed model as a graph, for images of one size or of all sizes."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from vit_plugin.errors import named_line, rejecting
from vit_plugin.passes.open_sizes import open_sizes
from vit_plugin.passes.precompute import precomputed

from .deployed_module import Deployed


def trace(
    model: Deployed, size: tuple[int, int] | None, batch: int | None = None
) -> ExportedProgram:
    """Trace the graph of the model.

    Args:
        model, size, batch: see :func:`~vit_plugin.deploy.export.export`.

    Raises:
        ConfigError: if the model has no such graph.
    """
    channels = model.model.backbone.in_channels
    example_size = size or sizes_to_try(model, None)[-1]
    # Not one image for any number: torch would take an axis of length 1 as constant.
    example = example_inputs(model, torch.zeros(batch or 2, channels, *example_size))
    shapes = _dynamic_shapes(model, size, batch)[: len(example)]
    with_open_sizes = nullcontext() if size else open_sizes(model)
    with torch.no_grad(), precomputed(model, size), with_open_sizes, _rejecting_graph(size):
        program = torch.export.export(model, example, dynamic_shapes=shapes)
        run = program.module()
        # The graph may have specialized to the example. With rounded sizes it also compares some of
        # them, which an ONNX file does not.
        for other in () if size is None and _has_rounded_maps(model) else sizes_to_try(model, size):
            run(*example_inputs(model, torch.zeros(batch or 1, channels, *other)))
    return program


def _dynamic_shapes(
    model: Deployed, size: tuple[int, int] | None, batch: int | None
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Axis -> dynamic dimension, as torch.export takes them, of the images and of their sizes."""
    batch_axis: dict[int, Any] = {} if batch else {0: Dim('batch')}
    if size:
        return batch_axis, batch_axis
    unit, least = model.unit, model.min_units
    if _has_rounded_maps(model):
        sides = dict.fromkeys((2, 3), Dim.AUTO(min=unit * least))
    else:
        sides = {2: unit * Dim('rows', min=least), 3: unit * Dim('columns', min=least)}
    return batch_axis | sides, batch_axis


def _has_rounded_maps(model: Deployed) -> bool:
    """Whether sizes of maps are rounded, since the stride does not divide the unit.

    Then torch cannot see that some of them are equal.
    """
    return bool(model.unit % model.stride)


def _rejecting_graph(size: tuple[int, int] | None) -> AbstractContextManager[None]:
    """A context that turns errors of tracing into a ``ConfigError``."""
    what = 'torch.export cannot trace this model'
    remedy = 'leave out the part of it that the cause names'
    if size is None:
        what = 'The graph of this model depends on the size of the images'
        remedy = 'write a file for each size, with --img-size, or have keep_ratio=False in the test'
    return rejecting(what, remedy, cause=named_line)


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
