"""Weights of MMPretrain's models whose rotary tables or training differ from ours."""

import pytest
import torch
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import load_checkpoint
from rejection import rejects
from tiny_models import TINY_SIZES

from benchmarks.dropin import rotary_of_eva02
from vit_plugin.models import load_weights

TINY = dict(
    arch=TINY_SIZES,
    img_size=64,
    patch_size=16,
)


def mmpretrains_and_ours(name: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """MMPretrain's model of this class, and our model that reads its weights."""
    init_default_scope('mmpretrain')
    theirs = MODELS.build(dict(TINY, type=f'mmpretrain.{name}'))
    ours = MODELS.build(dict(TINY, type=f'vit_plugin.MM{name}'))
    return theirs, ours


@pytest.mark.filterwarnings('ignore')
def test_mmpretrains_rotary_table_of_eva02_is_refused(tmp_path):
    theirs, ours = mmpretrains_and_ours('ViTEVA02')
    torch.save(theirs.state_dict(), tmp_path / 'x.pth')
    before = ours.pos_embed.clone()
    for load in (load_weights, load_checkpoint):
        with rejects(r'layers.0.attn.rope.freqs_cos.*other rotary positions.*skip='):
            load(ours, str(tmp_path / 'x.pth'))
    assert torch.equal(ours.pos_embed, before)
    report = load_weights(
        ours, theirs.state_dict(), skip=['{rest}.freqs_(cos|sin)', 'rope.freqs_(cos|sin)']
    )
    assert report.ignored['rope.freqs_cos'] == 'skipped'


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16])
def test_the_authors_rotary_table_of_eva02_is_accepted(dtype):
    theirs, ours = mmpretrains_and_ours('ViTEVA02')
    rotary_of_eva02(theirs)
    state = {key: value.to(dtype) for key, value in theirs.state_dict().items()}
    assert load_weights(ours, state).ignored['rope.freqs_cos'] == 'the model computes the same'


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('name', 'noted'), [('DeiT3', True), ('VisionTransformer', False)])
def test_weights_of_mmpretrains_deit3_are_noted(name, noted):
    theirs, ours = mmpretrains_and_ours(name)
    notes = load_weights(ours, theirs.state_dict()).notes
    assert any('ln1 is copied to ln2' in note for note in notes) == noted
