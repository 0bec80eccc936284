"""The input sizes of a model in its test pipeline."""

from typing import Any, NamedTuple

import numpy as np
from torch import nn

from vit_plugin.files.resizing import rounded_up

# Heights and widths of probe images, which show whether a pipeline has a single output size.
TRIED_SIZES = ((480, 640), (640, 480), (500, 500), (37, 611), (611, 37))


class Padding(NamedTuple):
    """Padding that a preprocessor adds at the right and at the bottom of test images.

    Attributes:
        unit: sides are multiples of it.
        min_size: minimum height and width.
        value: value of the padding, after normalization.
    """

    unit: int = 1
    min_size: tuple[int, int] = (1, 1)
    value: float = 0.0

    @property
    def adds_pixels(self) -> bool:
        return self.unit > 1 or max(self.min_size) > 1

    def padded_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width of an image of this size after padding."""
        height, width = (
            max(rounded_up(side, self.unit), min_side)
            for side, min_side in zip(size, self.min_size, strict=True)
        )
        return height, width


def padding_of(model: nn.Module) -> Padding:
    """The padding of a model's preprocessor in a test."""
    preprocessor: Any = getattr(model, 'data_preprocessor', None)
    if hasattr(preprocessor, 'test_cfg'):  # MMSegmentation's
        test_cfg = preprocessor.test_cfg or {}
        size = test_cfg.get('size') or (1, 1)
        return Padding(
            unit=test_cfg.get('size_divisor') or 1,
            min_size=(size[-2], size[-1]),
            value=preprocessor.pad_val,
        )
    return Padding(
        unit=getattr(preprocessor, 'pad_size_divisor', 1),
        value=getattr(preprocessor, 'pad_value', 0.0),
    )


class InputSizes(NamedTuple):
    """The image sizes that a file takes.

    Attributes:
        fixed_size: height and width, or None if dynamic.
        padding: padding after the steps of the pipeline.
        from_test_pipeline: whether they are those of the checkpoint's test pipeline. Otherwise they
            are from ``--img-size``, or those of the training.
    """

    fixed_size: tuple[int, int] | None
    padding: Padding = Padding()
    from_test_pipeline: bool = True


def sizes_of_test(trained: Any) -> InputSizes:
    """The sizes after the test pipeline of a ``TrainedModel``: one for all images, or dynamic.

    Without a test pipeline, the size is the backbone's own.
    """
    padding = padding_of(trained.model)
    if not trained.has_pixels:
        return InputSizes(trained.model.backbone.img_size, padding, from_test_pipeline=False)
    sizes = set()
    for shape in TRIED_SIZES:
        inputs = trained.sample(np.zeros((*shape, trained.pixels.bands), np.uint8))['inputs']
        sizes.add(padding.padded_size(tuple(inputs.shape[-2:])))
    return InputSizes(sizes.pop() if len(sizes) == 1 else None, padding)
