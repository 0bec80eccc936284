import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.token_merging import Merged, merge


def test_the_most_alike_are_merged():
    """Six patches after a class token; 1 is like 2, 3 like 0, 5 like none."""
    directions = torch.eye(8)
    metric = torch.stack([directions[7], directions[0], directions[1], directions[1] + 0.01 * directions[2],
                          directions[0] + 0.1 * directions[3], directions[4], directions[5]])[None]
    x = torch.arange(7.)[None, :, None]
    merged = merge(Merged.of(x), metric, 2, prefix=1)
    assert merged.sizes()[0].tolist() == [1, 2, 2, 1, 1]
    assert merged.tokens[0, :, 0].tolist() == [0, 2.5, 2.5, 5, 6]  # class token; patches 0 + 3, 1 + 2, 4; then 5
    assert merged.unmerged()[0, :, 0].tolist() == [0, 2.5, 2.5, 2.5, 2.5, 5, 6]


@given(patches=st.integers(2, 12), prefix=st.integers(0, 3), counts=st.lists(st.integers(0, 9), max_size=4))
def test_merging_keeps_the_sum_over_the_original_tokens(patches, prefix, counts):
    x = torch.randn(2, prefix + patches, 5, dtype=torch.float64)
    merged = Merged.of(x)
    for count in counts:
        before = merged.tokens.shape[1]
        merged = merge(merged, torch.randn(2, before, 4), count, prefix)
        assert merged.tokens.shape[1] == before - min(count, (before - prefix) // 2)
    assert torch.equal(merged.sizes().sum(1), torch.full((2, ), prefix + patches, dtype=torch.float64))
    torch.testing.assert_close(merged.unmerged().sum(1), x.sum(1))
    assert torch.equal(merged.tokens[:, :prefix], x[:, :prefix])


@pytest.mark.parametrize('out_type', ['cls_token', 'raw', 'featmap', 'avg_featmap'])
def test_equal_patches_lose_nothing_by_it(tiny, out_type):
    """Where patches are in pairs of equals, as many as there are pairs can be merged without changing the output."""
    cfg = dict(tiny, pos_embed='none', out_type=out_type)
    plain = VisionTransformer(**cfg).eval()
    merging = VisionTransformer(**cfg, block_cfg=dict(num_merged=[8, 0])).eval()
    merging.load_state_dict(plain.state_dict())
    image = torch.randn(2, 3, 32, 32)
    image[..., 8:16], image[..., 24:] = image[..., :8].clone(), image[..., 16:24].clone()
    torch.testing.assert_close(merging(image), plain(image), atol=1e-5, rtol=1e-5)


def test_every_block_gives_fewer_and_they_train(tiny):
    model = VisionTransformer(**tiny, block_cfg=dict(num_merged=3), with_cp=True)
    counts = []
    for block in model.blocks:
        block.register_forward_hook(lambda block, args, out: counts.append(out.tokens.shape[1]))
    out, = model(torch.randn(2, 3, 32, 32))
    assert counts == [14, 11]
    (out * torch.randn_like(out)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize('changes', [dict(pos_embed='relative'), dict(
    window=dict(size=2), with_cls_token=False, out_type='featmap')])
def test_what_needs_a_grid_cannot_merge(tiny, changes):
    with pytest.raises(ConfigError, match='num_merged leaves no grid'):
        VisionTransformer(**tiny, **changes, block_cfg=dict(num_merged=1))


def test_a_list_has_a_value_for_each_block(tiny):
    model = VisionTransformer(**tiny, block_cfg=dict(layer_scale_init_value=[0.1, 0.2]))
    assert [block.ls1.value for block in model.blocks] == [0.1, 0.2]
    with pytest.raises(ConfigError, match='num_merged has 3 values for 2 blocks'):
        VisionTransformer(**tiny, block_cfg=dict(num_merged=[1, 2, 3]))
