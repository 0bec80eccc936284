"""The sizes of the images that a test gives to a model."""

from typing import Any, NamedTuple

import numpy as np
from torch import nn

# Height and width of images on which a pipeline shows whether it has one size for all of them.
TRIED_SIZES = ((480, 640), (640, 480), (500, 500), (37, 611), (611, 37))


class Padding(NamedTuple):
    """What a preprocessor adds to images of a test, at the right and at the bottom.

    Attributes:
        unit: sides are multiples of it.
        least: height and width that they have at least.
        value: of what is added, after normalization.
    """

    unit: int = 1
    least: tuple[int, int] = (1, 1)
    value: float = 0.0

    @property
    def pads(self) -> bool:
        return self.unit > 1 or max(self.least) > 1

    def padded(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width with what is added to an image of this size."""
        height, width = (
            max(-(-side // self.unit) * self.unit, least)
            for side, least in zip(size, self.least, strict=True)
        )
        return height, width


def padding_of(model: nn.Module) -> Padding:
    """What a model's preprocessor adds to the images of a test."""
    preprocessor: Any = getattr(model, 'data_preprocessor', None)
    if hasattr(preprocessor, 'test_cfg'):  # MMSegmentation's
        test_cfg = preprocessor.test_cfg or {}
        least = test_cfg.get('size') or (1, 1)
        return Padding(
            test_cfg.get('size_divisor') or 1, (least[-2], least[-1]), preprocessor.pad_val
        )
    return Padding(
        getattr(preprocessor, 'pad_size_divisor', 1), value=getattr(preprocessor, 'pad_value', 0.0)
    )


class InputSizes(NamedTuple):
    """The sizes of the images that a file takes.

    Attributes:
        fixed: height and width, or None if they are open.
        padding: what is added to images after the steps of the pipeline.
        of_test: whether the checkpoint's test has them, and not ``--img-size``.
    """

    fixed: tuple[int, int] | None
    padding: Padding = Padding()
    of_test: bool = True


def sizes_of_test(trained: Any) -> InputSizes:
    """The sizes that the test of a ``TrainedModel`` has, open if its images keep their ratio.

    Without the steps of a test, the size is the backbone's own.
    """
    padding = padding_of(trained.model)
    if not trained.has_pixels:
        return InputSizes(trained.model.backbone.img_size, padding, of_test=False)
    sizes = set()
    for shape in TRIED_SIZES:
        inputs = trained.sample(np.zeros((*shape, trained.pixels.bands), np.uint8))['inputs']
        sizes.add(padding.padded(tuple(inputs.shape[-2:])))
    return InputSizes(sizes.pop() if len(sizes) == 1 else None, padding)
