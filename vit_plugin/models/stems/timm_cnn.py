"""Any CNN of timm under the transformer."""

from typing import Any

import timm
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from .stem import Stem


@MODELS.register_module()
class TimmEmbed(Stem):
    """The feature maps of a timm model, then patches of the last one.

    The image is padded at the right and bottom to a multiple of the CNN's stride, so that the grid is
    ceil(H / stride) x ceil(W / stride) whatever padding the CNN uses inside.

    Args:
        in_channels, embed_dims, patch_size and the rest: see :class:`Stem`.
        model_name: a name of ``timm.list_models()`` with support for ``features_only``.
        out_indices: which of its maps to use; the last one becomes the tokens. timm cuts most CNNs off after it;
            where it does not (EfficientNet, HRNet), DDP needs ``find_unused_parameters=True``.
        pretrained: load timm's weights of that name.
        model_kwargs: further arguments of ``timm.create_model``.

    Raises:
        ConfigError: if timm has no such model, or it gives no such feature maps.
    """

    def __init__(self, in_channels: int, embed_dims: int, model_name: str, out_indices: tuple[int, ...] | None = None,
                 patch_size: int = 1, pretrained: bool = False, model_kwargs: dict | None = None,
                 **kwargs: Any) -> None:
        indices = {} if out_indices is None else {'out_indices': tuple(sorted(out_indices))}
        try:
            backbone = timm.create_model(
                model_name, pretrained=pretrained, features_only=True, in_chans=in_channels, **indices,
                **(model_kwargs or {}))
            if kwargs.get('with_cp'):
                backbone.set_grad_checkpointing(True)
        except (RuntimeError, AttributeError, AssertionError, IndexError) as error:
            near = timm.list_models(f'*{model_name[:6]}*')[:5]
            raise ConfigError(f'patch_embed: timm gives no such feature maps for model_name={model_name!r} '
                              f'({str(error) or type(error).__name__}); similar names are '
                              f'{", ".join(near) or "none"}.') from error
        info = backbone.feature_info
        super().__init__(in_channels, embed_dims, patch_size, **kwargs,
                         feature_strides=info.reduction(), feature_channels=info.channels())
        self.backbone = backbone
        self.backbone.is_init = True  # or MMEngine would call timm's own initialisation over pretrained weights
        self.num_depths = 2

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        stride = self.feature_strides[-1]
        right, bottom = -images.shape[-1] % stride, -images.shape[-2] % stride
        return tuple(self.backbone(F.pad(images, (0, right, 0, bottom)) if right or bottom else images))

    def layer_depth(self, name: str) -> int:
        """The CNN is one step, since timm's models have no common notion of a stage."""
        return 0 if name.startswith('backbone.') else 1
