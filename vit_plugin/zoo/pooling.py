"""Convert timm's pooling of tokens to our ``neck``."""

from typing import Any

from timm.models.beit import Beit
from timm.models.eva import Eva
from torch import nn

from .norms import convert_activation, convert_norm, differences


def convert_pooling(model: nn.Module) -> tuple[str, dict[str, Any]] | None:
    """The ``out_type`` of the backbone and the neck that together pool as timm's model does.

    None: the ``out_type`` of :func:`~vit_plugin.zoo.definition.describe` is enough, since nothing
    follows the class token or the average.

    Raises:
        ValueError: if a norm or an activation of the pooling is not known.
    """
    neck = dict(type='vit_plugin.TokenPooling', in_channels=model.embed_dim)
    pool = None if isinstance(model, Beit) else model.attn_pool
    if pool is not None:
        # timm's class VisionTransformer pools only the patches by default, its class Eva all
        # tokens.
        out_type = 'raw' if isinstance(model, Eva) or model.pool_include_prefix else 'featmap'
        numerics = differences(
            dict(norm_cfg=convert_norm(pool.norm), act_cfg=convert_activation(pool.mlp.act))
        )
        return out_type, dict(
            neck,
            mode='map',
            map_cfg=dict(
                num_heads=pool.num_heads,
                feedforward_channels=pool.mlp.fc1.out_features,
                numerics=numerics,
            ),
        )
    if model.global_pool == 'avg' and not isinstance(model.fc_norm, nn.Identity):
        return 'featmap', dict(neck, mode='avg', norm_cfg=convert_norm(model.fc_norm))
    return None
