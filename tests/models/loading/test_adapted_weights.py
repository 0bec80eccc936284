import torch
from rejection import rejects
from torch.nn.functional import interpolate

from vit_plugin.models import VisionTransformer, load_weights


def models(
    tiny: dict, theirs: dict | None = None, ours: dict | None = None
) -> tuple[VisionTransformer, ...]:
    """The model that a checkpoint comes from, and the model that loads it."""
    return tuple(
        VisionTransformer(**{**tiny, 'out_type': 'raw', **(change or {})}).eval()
        for change in (theirs, ours)
    )


def test_patch_kernels_are_resized(tiny):
    theirs, ours = models(tiny, None, dict(arch=dict(tiny['arch'], patch_size=16), img_size=64))
    report = load_weights(ours, theirs.state_dict())
    assert report.adapted == {'patch_embed.proj.weight': 'patches of 8 x 8 to 16 x 16'}
    images = torch.randn(1, 3, 32, 32)
    patches = images.unfold(2, 8, 8).unfold(3, 8, 8)  # each patch enlarged by itself
    patches = interpolate(
        patches.permute(0, 2, 3, 1, 4, 5).reshape(16, 3, 8, 8), (16, 16), mode='bilinear'
    )
    larger = patches.reshape(1, 4, 4, 3, 16, 16).permute(0, 3, 1, 4, 2, 5).reshape(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours(larger)[0], theirs(images)[0], atol=1e-4, rtol=1e-4)


def test_gray_input_of_a_hybrid_is_refused(tiny_hybrid):
    theirs, ours = models(tiny_hybrid, None, dict(patch_embed=dict(in_channels=1)))
    with rejects('is not exact, since the kernel is standardized.*keep in_channels=3'):
        load_weights(ours, theirs.state_dict())


def test_input_channels_are_reduced_to_gray(tiny):
    theirs, ours = models(tiny, None, dict(patch_embed=dict(in_channels=1)))
    report = load_weights(ours, theirs.state_dict())
    assert list(report.adapted.values()) == ['3 input channels to 1']
    gray = torch.randn(1, 1, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            ours(gray)[0], theirs(gray.expand(-1, 3, -1, -1))[0], atol=1e-4, rtol=1e-4
        )
