"""The models that `train --data` uses without ``--arch`` and ``--weights``: small hybrids.

They learn from few small images within minutes on one core (docs/results.md).
"""

from vit_plugin.arguments.fields import Section

SMALL_SIDE, LARGE_SIDE = 64, 144
NEW_BLOCKS: Section = dict(embed_dims=192, num_layers=2, num_heads=3, feedforward_channels=384)
# By the shorter side of the images in pixels, see `small_hybrid`.
SMALL_HYBRIDS: dict[int, Section] = {
    0: dict(  # the recipe for CIFAR-10
        arch=NEW_BLOCKS,
        patch_embed=dict(
            type='PooledResNetEmbed',
            channels=(24, 64, 128, 192),
            patch_size=1,
            projection=False,
            whitened=True,
            skip=False,
            channels_last=True,
        ),
        numerics=dict(act_cfg=dict(approximate='none'), stem_norm_cfg=dict(type='BN')),
        encoder=dict(layer_scale_init_value=0.1),
    ),
    SMALL_SIDE: dict(  # one more stage, and GroupNorm for the small batches of boxes and masks
        arch=NEW_BLOCKS,
        patch_embed=dict(type='PooledResNetEmbed', channels=(16, 32, 64, 128), patch_size=2),
        numerics=dict(stem_norm_cfg=dict(num_groups=8)),
    ),
    # The recipe for BCCD: no convolution at full resolution, which costs most.
    LARGE_SIDE: dict(
        arch=dict(NEW_BLOCKS, num_layers=4, feedforward_channels=768),
        patch_embed=dict(type='ResNetEmbed', stage_depths=(2, 3), width=32, patch_size=2),
        numerics=dict(stem_norm_cfg=dict(num_groups=8)),
    ),
}


def small_hybrid(size: int, hybrid_range: tuple[int, int]) -> Section:
    """The backbone's arguments for images with this shorter side in pixels.

    Args:
        size: the shorter side. The largest key of :data:`SMALL_HYBRIDS` up to it is chosen.
        hybrid_range: the first and the last key that fit the task.
    """
    first, last = hybrid_range
    row = max(pixels for pixels in SMALL_HYBRIDS if pixels <= min(max(size, first), last))
    return SMALL_HYBRIDS[row]
