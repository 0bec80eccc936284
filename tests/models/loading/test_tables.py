"""Tables that checkpoints hold and the model computes: equal ones are left out, others rejected."""

import pytest
import torch
from campaigns.dropin import rotary_of_eva02
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import load_checkpoint

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights

TINY = dict(
    arch=dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64),
    img_size=64,
    patch_size=16,
)


def both(name: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """MMPretrain's model and ours."""
    init_default_scope('mmpretrain')
    return tuple(
        MODELS.build(dict(TINY, type=kind))
        for kind in (f'mmpretrain.{name}', f'vit_plugin.MM{name}')
    )


@pytest.mark.filterwarnings('ignore')
def test_the_table_that_mmpretrain_trains_with_is_refused(tmp_path):
    theirs, ours = both('ViTEVA02')
    torch.save(theirs.state_dict(), tmp_path / 'x.pth')
    before = ours.pos_embed.clone()
    for load in (load_weights, load_checkpoint):
        with pytest.raises(
            ConfigError, match=r'layers.0.attn.rope.freqs_cos.*other rotary positions.*skip='
        ):
            load(ours, str(tmp_path / 'x.pth'))
    assert torch.equal(ours.pos_embed, before)
    report = load_weights(
        ours, theirs.state_dict(), skip=['{rest}.freqs_(cos|sin)', 'rope.freqs_(cos|sin)']
    )
    assert report.ignored['rope.freqs_cos'] == 'skipped'


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16])
def test_the_authors_table_is_accepted(dtype):
    theirs, ours = both('ViTEVA02')
    rotary_of_eva02(theirs)
    state = {key: value.to(dtype) for key, value in theirs.state_dict().items()}
    assert load_weights(ours, state).ignored['rope.freqs_cos'] == 'the model computes the same'


@pytest.mark.parametrize('factor', [1.0, 1.5])
def test_periods_of_dinov3(factor):
    model = VisionTransformer(
        TINY['arch'] | dict(patch_size=16),
        img_size=64,
        pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')),
    )
    state = {**model.state_dict(), 'rope_embed.periods': factor * 100 ** (torch.arange(4) / 4)}
    state = {key.replace('.ls', '.gamma_'): value for key, value in state.items()}
    if factor == 1.0:
        assert 'rope_embed.periods' in load_weights(model, state).ignored
    else:
        with pytest.raises(ConfigError, match='rope_embed.periods: the model computes other'):
            load_weights(model, state)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('name', 'said'), [('DeiT3', True), ('VisionTransformer', False)])
def test_deit3_of_mmpretrain_is_named(name, said):
    theirs, ours = both(name)
    notes = load_weights(ours, theirs.state_dict()).notes
    assert any('ln1 is copied to ln2' in note for note in notes) == said
