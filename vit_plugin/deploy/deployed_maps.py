"""A model of MMSegmentation as a graph: an image, not cut into windows -> values per pixel."""

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .deployed_module import Deployed


class DeployedMaps(Deployed):
    """MMSegmentation's model -> values per pixel (B, C, H, W).

    Raises:
        ConfigError: if the model cuts an image into windows (sliding-window inference).
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(model, dtype)
        if model.test_cfg.get('mode') == 'slide':
            raise ConfigError(
                "model.test_cfg.mode='slide' cuts an image into windows, which is not part of a "
                'graph; export with --cfg-options model.test_cfg.mode=whole and --img-size, and '
                'cut outside.'
            )

    def forward(self, images: Tensor, sizes: Tensor | None = None) -> Tensor:
        size = tuple(images.shape[-2:])
        return self.model.decode_head.predict(
            self.features(images, sizes),
            [dict(img_shape=size, pad_shape=size)],
            self.model.test_cfg,
        ).float()
