"""EoMT: a Vision Transformer that segments without a decoder (arXiv:2503.19108)."""

from typing import Any

from torch import Tensor

from vit_plugin.arguments.fields import Depth, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.window import InWindows
from vit_plugin.registry import MODELS

from .mask_queries import MaskQueries


@MODELS.register_module()
class EoMT(VisionTransformer):
    """A :class:`VisionTransformer` with queries in its last blocks, each for a class and a mask.

    It is the backbone of an ``EoMTHead`` (MMDetection) or an ``EoMTDecodeHead`` (MMSegmentation),
    which have the loss and make the segmentation from the predictions. In a trained model no query
    is masked, so it predicts in a single pass of the transformer. See
    :class:`~vit_plugin.projects.eomt.mask_queries.MaskQueries`.

    Args:
        num_classes: number of classes.
        num_queries: number of queries. The authors have 100 for semantic and 200 for panoptic and
            instance masks.
        num_blocks: number of final blocks with queries. The authors have 3 for S and B, 4 for L and
            5 for g.
        **kwargs: see :class:`VisionTransformer`, without ``out_indices`` and ``out_type``.

    Raises:
        ConfigError: if there are fewer than ``num_blocks`` blocks, if one of these has windows, or
            if ``out_indices`` or ``out_type`` is set.
    """

    # Overrides attributes of VisionTransformer and LoadableBackbone, which describe them.
    one_patch_size = True  # the stride of the masks is a fraction of the patch size
    channels = ()  # the outputs are classes and masks
    added_parts = ('queries',)
    added_classifiers = ('queries.class_head.',)

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 100,
        num_blocks: Depth = 4,
        **kwargs: Any,
    ) -> None:
        for name in ('out_indices', 'out_type'):
            if name in kwargs:
                raise ConfigError(
                    f'EoMT: {name} is not an option, since the outputs are classes and masks; '
                    'leave it out.'
                )
        super().__init__(**kwargs, out_type='raw')
        if num_blocks > self.num_layers:
            raise ConfigError(
                f'EoMT: num_blocks={num_blocks} is more than the {self.num_layers} blocks of the '
                'arch; change it.'
            )
        if any(isinstance(block.attn, InWindows) for block in self.blocks[-num_blocks:]):
            raise ConfigError(
                f'EoMT: windows hold no queries, but the last num_blocks={num_blocks} blocks '
                'have some; add these blocks to global_blocks of the window in encoder.'
            )
        self.num_plain_blocks = self.num_layers - num_blocks
        self.queries = MaskQueries(
            self.embed_dims, num_queries, num_classes, num_blocks, self.patch_embed.stride
        )

    def forward(self, images: Tensor) -> tuple[Any, ...]:
        """Images (B, in_channels, H, W) -> predictions, each a pair of class and mask logits.

        Class logits are (B, Q, num_classes + 1), and mask logits (B, Q, H/4, W/4) for patches of 16
        x 16 pixels. The last prediction is the result. Those before it, one for each block with
        queries, are only for the loss.
        """
        x, grid, _, rotations = self.begin(images)  # (B, prefix + h*w, C)
        x = self.blocks.run_blocks(x, grid, 0, self.num_plain_blocks, position_inputs=rotations)
        return self.queries.decode(
            self.blocks, x, grid, self.num_plain_blocks, self.norm, rotations
        )
