import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.token_merging import TokenMerging


def reference(x: torch.Tensor, sizes: torch.Tensor, metric: torch.Tensor, count: int, prefix: int,
              ) -> tuple[torch.Tensor, torch.Tensor]:
    """The arithmetic of facebookresearch/ToMe `merge.py` for one image: tokens (M, C), sizes (M, ), metric (M, d).

    Its prefix is empty, a class token, or a class and a distillation token.
    """
    count = min(count, (len(x) - prefix) // 2)
    if count <= 0:
        return x, sizes
    sources, targets = list(range(0, len(x), 2)), list(range(1, len(x), 2))
    unit = metric / metric.norm(dim=-1, keepdim=True)
    best = {}
    for i in sources:
        choices = [(unit[i] @ unit[j], j) for j in targets if not (prefix == 2 and j == 1)]
        best[i] = max(choices, default=(-torch.inf, None), key=lambda choice: choice[0])
        if prefix and i == 0:
            best[i] = (-torch.inf, None)
    ranked = sorted(sources, key=lambda i: -best[i][0])
    merged, kept = ranked[:count], ranked[count:]
    kept = sorted(kept) if prefix else kept
    parts = {j: [j] + [i for i in merged if best[i][1] == j] for j in targets}
    order = [[i] for i in kept] + [parts[j] for j in targets]
    if prefix == 2:
        order = [[0], parts[1], *([i] for i in kept[1:]), *(parts[j] for j in targets[1:])]
    new = torch.stack([sum(sizes[i] for i in part) for part in order])
    return torch.stack([sum(x[i] * sizes[i] for i in part) for part in order]) / new[:, None], new


@settings(deadline=None)
@given(patches=st.integers(2, 13), prefix=st.integers(0, 2), counts=st.lists(st.integers(0, 9), max_size=4),
       seed=st.integers(0, 99))
def test_it_is_the_reference(patches, prefix, counts, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, prefix + patches, 3, dtype=torch.float64, generator=generator)
    merging, theirs, sizes = TokenMerging.of(x, prefix), x[0], torch.ones(x.shape[1], dtype=torch.float64)
    for count in counts:
        metric = torch.randn(1, x.shape[1], 4, dtype=torch.float64, generator=generator)
        x, merging = merging.merge(x, metric, count)
        theirs, sizes = reference(theirs, sizes, metric[0], count, prefix)
        torch.testing.assert_close(x[0], theirs)
        torch.testing.assert_close(merging.sizes[0, :, 0], sizes)


@settings(deadline=None)
@given(patches=st.integers(2, 12), prefix=st.integers(0, 5), counts=st.lists(st.integers(0, 9), max_size=4))
def test_merging_keeps_the_sum_over_the_original_tokens(patches, prefix, counts):
    original = x = torch.randn(2, prefix + patches, 5, dtype=torch.float64)
    merging = TokenMerging.of(x, prefix)
    for count in counts:
        before = x.shape[1]
        x, merging = merging.merge(x, torch.randn(2, before, 4), count)
        assert x.shape[1] == before - min(count, (before - prefix) // 2)
    assert torch.equal(merging.sizes.sum((1, 2)), torch.full((2, ), prefix + patches, dtype=torch.float64))
    unmerged = merging.unmerge(x)
    torch.testing.assert_close(unmerged.sum(1), original.sum(1))
    assert torch.equal(unmerged[:, :prefix], original[:, :prefix])


@pytest.mark.parametrize('out_type', ['cls_token', 'raw', 'featmap', 'avg_featmap'])
def test_equal_patches_lose_nothing_by_it(tiny, out_type):
    """Where patches are in pairs of equals, as many as there are pairs can be merged without changing the output."""
    cfg = dict(tiny, pos_embed='none', out_type=out_type)
    plain = VisionTransformer(**cfg).eval()
    merging = VisionTransformer(**cfg, encoder=dict(num_merged=[8, 0])).eval()
    merging.load_state_dict(plain.state_dict())
    image = torch.randn(2, 3, 32, 32)
    image[..., 8:16], image[..., 24:] = image[..., :8].clone(), image[..., 16:24].clone()
    torch.testing.assert_close(merging(image), plain(image), atol=1e-5, rtol=1e-5)


def test_every_block_gives_fewer_and_they_train(tiny):
    model = VisionTransformer(**tiny, encoder=dict(num_merged=3), with_cp=True)
    counts = []
    for block in model.blocks:
        block.mlp.fc2.register_forward_hook(lambda layer, args, out: counts.append(out.shape[1]))
    out, = model(torch.randn(2, 3, 32, 32))
    assert counts == [14, 11]
    (out * torch.randn_like(out)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize('changes', [dict(pos_embed='relative', encoder=dict(num_merged=1)), dict(
    encoder=dict(window=dict(size=2), num_merged=1), with_cls_token=False, out_type='featmap')])
def test_what_needs_a_grid_cannot_merge(tiny, changes):
    with pytest.raises(ConfigError, match='num_merged leaves no grid'):
        VisionTransformer(**tiny, **changes)
