"""An image as a model gets it, with the pixels to draw over."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from vit_plugin.files.bands import as_photograph


class PreparedImage(NamedTuple):
    """An image as a model gets it."""

    image: np.ndarray  # pixels (H, W, 3) in RGB, before they are normalized
    inputs: Tensor  # (1, C, H', W'), which may be padded at the right and bottom
    # What the image shows, in RGB at its own resolution, if that is known.
    photograph: np.ndarray | None = None
    beside: bool = True  # whether pictures of it begin with the image itself

    @property
    def covered(self) -> tuple[int, int]:
        """Height and width of the input, on which the patches lie."""
        return self.inputs.shape[-2], self.inputs.shape[-1]

    @property
    def sharpest(self) -> np.ndarray:
        """The pixels (H, W, 3) in RGB to draw over: the photograph, or else the image."""
        return self.image if self.photograph is None else self.photograph

    def without_padding(self, features: Tensor) -> Tensor:
        """The part of a map of patches (C, h, w) that lies on the image."""
        height, width = (
            math.ceil(patches * min(seen / covered, 1))
            for patches, seen, covered in zip(
                features.shape[1:], self.image.shape, self.covered, strict=False
            )
        )
        return features[:, :height, :width]

    @classmethod
    def from_batch(cls, model: nn.Module, batch: Mapping[str, Any]) -> 'PreparedImage':
        """The one image of a batch from a pipeline, normalized by the model's data preprocessor."""
        image = batch['inputs'][0].permute(1, 2, 0).numpy()
        if image.shape[-1] not in (1, 3):
            image = as_photograph(image)
        inputs = model.data_preprocessor(batch, False)['inputs']
        return cls(np.repeat(image[..., ::-1], 3 // image.shape[-1], axis=-1), inputs)
