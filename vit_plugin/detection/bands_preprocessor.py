"""MMDetection's preprocessor for images of any number of bands."""

from collections.abc import Sequence
from typing import Any

import torch

from vit_plugin.registry import MODELS, needed_class

DetDataPreprocessor: Any = needed_class('BandsPreprocessor', 'mmdet.models:DetDataPreprocessor')


@MODELS.register_module()
class BandsPreprocessor(DetDataPreprocessor):
    """``DetDataPreprocessor`` with one value per band, where MMDetection's takes one or three.

    Args:
        mean, std: normalization of each band.
        **kwargs: arguments of ``DetDataPreprocessor``.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # The base sets it with a mean, but accepts only one or three values.
        self._enable_normalize = True
        for name, values in (('mean', mean), ('std', std)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1), persistent=False)
