"""Adapt patch kernels and input channels of a checkpoint to another model.

The position table is in test_position_table.py.
"""

import torch
from rejection import rejects
from torch.nn.functional import interpolate

from vit_plugin.models import VisionTransformer, load_weights


def source_and_target(
    tiny: dict, source: dict | None = None, target: dict | None = None
) -> tuple[VisionTransformer, ...]:
    """The model that a checkpoint comes from, and the model that loads it.

    Each has the arguments ``tiny``, changed by its own.
    """
    return tuple(
        VisionTransformer(**{**tiny, 'out_type': 'raw', **(change or {})}).eval()
        for change in (source, target)
    )


def test_patch_kernels_are_resized(tiny):
    source, target = source_and_target(
        tiny, None, dict(arch=dict(tiny['arch'], patch_size=16), img_size=64)
    )
    report = load_weights(target, source.state_dict())
    assert report.adapted == {'patch_embed.proj.weight': 'patches of 8 x 8 to 16 x 16'}
    images = torch.randn(1, 3, 32, 32)
    # Enlarge each patch by itself: the new kernels give the old tokens.
    patches = images.unfold(2, 8, 8).unfold(3, 8, 8)
    patches = interpolate(
        patches.permute(0, 2, 3, 1, 4, 5).reshape(16, 3, 8, 8), (16, 16), mode='bilinear'
    )
    larger = patches.reshape(1, 4, 4, 3, 16, 16).permute(0, 3, 1, 4, 2, 5).reshape(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(target(larger)[0], source(images)[0], atol=1e-4, rtol=1e-4)


def test_gray_input_of_a_hybrid_is_refused(tiny_hybrid):
    source, target = source_and_target(tiny_hybrid, None, dict(patch_embed=dict(in_channels=1)))
    with rejects('is not exact, since the kernel is standardized.*keep in_channels=3'):
        load_weights(target, source.state_dict())


def test_input_channels_are_reduced_to_gray(tiny):
    source, target = source_and_target(tiny, None, dict(patch_embed=dict(in_channels=1)))
    report = load_weights(target, source.state_dict())
    assert list(report.adapted.values()) == ['3 input channels to 1']
    gray = torch.randn(1, 1, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            target(gray)[0], source(gray.expand(-1, 3, -1, -1))[0], atol=1e-4, rtol=1e-4
        )
