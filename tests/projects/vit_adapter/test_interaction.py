"""The exchange between the tokens of a transformer and a feature pyramid."""

import pytest
import torch

from vit_plugin.models.layers.deformable_attention import MapLevel
from vit_plugin.projects.vit_adapter.interaction import Interaction, to_maps

PATCHES, LEVELS = (
    MapLevel((3, 4), 16),
    [MapLevel((6, 8), 8), MapLevel((3, 4), 16), MapLevel((2, 2), 32)],
)
ELEMENTS = 48 + 12 + 4  # the sum over the three levels


def interaction(**kwargs) -> Interaction:
    return Interaction(
        **{
            **dict(
                embed_dims=16,
                num_levels=3,
                num_extractors=2,
                init_values=1.0,
                with_cp=False,
                cffn_ratio=0.5,
                drop_path_rate=0.0,
                num_heads=2,
                num_points=2,
                value_ratio=0.5,
            ),
            **kwargs,
        }
    )


def test_injection_changes_only_patches():
    layer, x, pyramid = interaction(), torch.randn(2, 3 + 12, 16), torch.randn(2, ELEMENTS, 16)
    out = layer.inject(x, PATCHES, pyramid, LEVELS)
    assert torch.equal(out[:, :3], x[:, :3])
    assert not torch.isclose(out[:, 3:], x[:, 3:]).all(dim=-1).any()


def test_injection_without_injector_or_with_zero_gamma_changes_nothing():
    x, pyramid = torch.randn(2, 12, 16), torch.randn(2, ELEMENTS, 16)
    assert interaction(init_values=None).inject(x, PATCHES, pyramid, LEVELS) is x
    assert torch.equal(interaction(init_values=0.0).inject(x, PATCHES, pyramid, LEVELS), x)


def test_cffn_ratio_zero_leaves_out_the_ffn():
    assert interaction(cffn_ratio=0.0).extractor.ffn is None


@pytest.mark.parametrize('training', [False, True])
def test_drop_path_drops_the_ffn_of_whole_images(training):
    layer = interaction(num_extractors=1, drop_path_rate=0.5).train(training)
    pyramid, patches = (
        torch.randn(1, ELEMENTS, 16).expand(16, -1, -1),
        torch.randn(1, 12, 16).expand(16, -1, -1),
    )
    out = layer.extract(pyramid, LEVELS, patches, PATCHES)
    # The 16 images are equal, so one value is with the FFN, and the other without.
    values = torch.unique(out[:, 0, 0].mul(1e4).round())
    assert len(values) == (2 if training else 1)


def test_recomputing_keeps_gradients():
    plain, recomputed = interaction(), interaction(with_cp=True)
    recomputed.load_state_dict(plain.state_dict())
    x, pyramid = torch.randn(2, 13, 16, requires_grad=True), torch.randn(2, ELEMENTS, 16)
    gradients = []
    for layer in (plain, recomputed):
        y = layer.inject(x, PATCHES, pyramid, LEVELS)
        out = layer.extract(pyramid, LEVELS, y[:, 1:], PATCHES)
        gradients.append(torch.autograd.grad(out.square().sum(), (x, *layer.parameters())))
    torch.testing.assert_close(*gradients)


def test_to_maps_splits_a_pyramid():
    maps = [torch.randn(2, 16, *level.size) for level in LEVELS]
    pyramid = torch.cat([x.flatten(2).transpose(1, 2) for x in maps], dim=1)
    assert all(map(torch.equal, to_maps(pyramid, LEVELS), maps))
