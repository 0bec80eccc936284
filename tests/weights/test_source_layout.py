"""Write trained weights in a foreign file's layout; what was not trained stays bit-identical."""

import json

import numpy as np
import pytest
import torch
from rejection import rejects
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_models import TINY, randomize

from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS, open_checkpoint, recognize
from vit_plugin.weights.carried_records import file_record
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.source_layout import changed_tensors, export_to_source_layout

REGISTERS = dict(encoder=dict(reg_token=2, layer_scale_init_value=0.1))


def run_of(state, **meta):
    """A checkpoint with this backbone, and with other parts that must be ignored."""
    backbone = {f'backbone.{name}': value for name, value in state.items()}
    others = dict.fromkeys(('neck.mlp.weight', 'teacher.module.0.cls_token'), torch.ones(1))
    return Checkpoint('run.pth', dict(meta=meta, state_dict=backbone | others))


def tiny(**arguments):
    """The state of a small random model, by our names. Two calls give the same."""
    torch.manual_seed(0)
    return randomize(
        VisionTransformer(TINY, img_size=32, numerics='timm', **arguments)
    ).state_dict()


@pytest.fixture
def folder(tmp_path):
    """A folder of transformers. Its model has registers, but no rows for them in the table."""
    state = tiny(**REGISTERS)
    state['pos_embed'] = torch.cat((state['pos_embed'][:, :1], state['pos_embed'][:, 3:]), dim=1)
    weights, omitted = FORMATS['hf_dinov2'].export(state, heads=2)
    assert not omitted
    weights['embeddings.mask_token'] = torch.ones(1, 32)
    path = tmp_path / 'theirs'
    path.mkdir()
    save_file(weights, path / 'model.safetensors', metadata=dict(format='pt'))
    (path / 'config.json').write_text('{"model_type": "dinov2_with_registers"}')
    (path / 'preprocessor_config.json').write_text('{}')
    return path


def as_loaded():
    """The state of our model after loading the folder: zeros in the registers' rows."""
    state = tiny(**REGISTERS)
    state['pos_embed'][:, 1:3] = 0
    return state


def test_exports_without_training_change_nothing(folder, tmp_path):
    original = open_checkpoint(folder)
    summary = export_to_source_layout(original, run_of(as_loaded()), tmp_path / 'again')
    assert ': 0 of the ' in summary
    again = open_checkpoint(tmp_path / 'again').weights
    assert again.keys() == original.weights.keys()
    assert all(torch.equal(again[name], value) for name, value in original.weights.items())
    for name in ('config.json', 'preprocessor_config.json'):
        assert (tmp_path / 'again' / name).read_bytes() == (folder / name).read_bytes()
    with safe_open(tmp_path / 'again/model.safetensors', framework='pt') as file:
        assert {**file.metadata(), 'provenance': ''} == dict(format='pt', provenance='')
    record = file_record(tmp_path / 'again/model.safetensors')
    assert (record.source, record.made) == ('again', 'converted')


def test_adapters_are_added_to_the_weights_of_the_file(folder):
    """The run has its frozen layers in bfloat16, which must not round those of the file."""
    state, low = as_loaded(), torch.bfloat16
    layer, generator = 'blocks.1.attn.proj', torch.Generator().manual_seed(0)
    down, up = (torch.randn(size, generator=generator) for size in ((2, 32), (32, 2)))
    base = state[f'{layer}.weight']
    state = {
        name: value.to(low) if name.startswith('blocks.0') else value
        for name, value in state.items()
    }
    state[f'{layer}.base_layer.weight'] = state.pop(f'{layer}.weight').to(low)
    state[f'{layer}.base_layer.bias'] = state.pop(f'{layer}.bias').to(low)
    state[f'{layer}.lora_A.default.weight'], state[f'{layer}.lora_B.default.weight'] = down, up
    trained = run_of(state, lora=dict(r=2, alpha=6.0))
    changed = changed_tensors(open_checkpoint(folder), trained)
    assert {*changed} == {'encoder.layer.1.attention.output.dense.weight'}
    scale = 6 / 2  # alpha / r
    expected = (base.double() + scale * up.double() @ down.double()).float()
    assert torch.equal(changed.popitem()[1], expected)


def test_checkpoints_of_runs_get_the_trained_backbone(tmp_path):
    state = tiny()
    content = dict(
        meta=dict(cfg='a = 1'),
        state_dict={**run_of(state).weights, 'bbox_head.scale': torch.ones(2)},
        optimizer=dict(state={}),
    )
    torch.save(content, tmp_path / 'run.pth')
    trained = dict(state, cls_token=state['cls_token'] + 1)
    export_to_source_layout(
        open_checkpoint(tmp_path / 'run.pth'), run_of(trained), tmp_path / 'again.pth'
    )
    written = torch.load(tmp_path / 'again.pth')
    assert written.keys() == {'meta', 'state_dict'}
    assert torch.equal(written['state_dict']['backbone.cls_token'], trained['cls_token'])
    assert torch.equal(written['state_dict']['bbox_head.scale'], torch.ones(2))


def test_arrays_of_flax_keep_their_axes(tmp_path):
    """Its attention has an axis for the heads, and old norms are (1, 1, 1, C)."""
    state = tiny()
    weights, omitted = FORMATS['jax'].export(state, heads=2)
    assert not omitted
    norm = 'Transformer/encoder_norm/scale'
    arrays = {name: value.numpy() for name, value in weights.items()}
    arrays[norm] = arrays[norm].reshape(1, 1, 1, -1)
    np.savez(tmp_path / 'theirs.npz', **arrays)
    changed = ('blocks.1.attn.qkv.weight', 'blocks.1.attn.proj.weight', 'norm.weight')
    trained = {name: value + 1 if name in changed else value for name, value in state.items()}
    original = open_checkpoint(tmp_path / 'theirs.npz')
    export_to_source_layout(original, run_of(trained), tmp_path / 'again.npz')
    again = open_checkpoint(tmp_path / 'again.npz').weights
    assert {name: value.shape for name, value in again.items()} == {
        name: value.shape for name, value in arrays.items()
    }
    ours = recognize(again)
    assert all(torch.equal(ours[name], trained[name]) for name in ours)


def test_other_models_and_sizes_are_refused(folder):
    original = open_checkpoint(folder)
    state = as_loaded()
    larger = dict(state, pos_embed=torch.ones(1, 3 + 25, 32))
    with rejects(r'has pos_embed as \(1, 17, 32\), which is \(1, 28, 32\) in'):
        changed_tensors(original, run_of(larger))
    del state['blocks.1.mlp.fc1.weight']
    with rejects('blocks.1.mlp.fc1.weight as .* which is not in the back'):
        changed_tensors(original, run_of(state))


def test_shards_stay_shards(folder, tmp_path):
    weights = dict(open_checkpoint(folder).weights)
    names = sorted(weights)
    parts = {'a.safetensors': names[:10], 'b.safetensors': names[10:]}
    for file, chosen in parts.items():
        save_file({name: weights[name] for name in chosen}, folder / file)
    (folder / 'model.safetensors').unlink()
    index = dict(weight_map={name: file for file, chosen in parts.items() for name in chosen})
    (folder / 'model.safetensors.index.json').write_text(json.dumps(index))
    state = as_loaded()
    state['norm.weight'] = state['norm.weight'] + 1
    export_to_source_layout(open_checkpoint(folder), run_of(state), tmp_path / 'again')
    again = open_checkpoint(tmp_path / 'again').weights
    different = {name for name in names if not torch.equal(again[name], weights[name])}
    assert different == {'layernorm.weight'}


@pytest.mark.parametrize('name', ['original.pth', 'original'])
def test_another_type_of_file_than_the_original_is_refused(name, tmp_path):
    torch.save(FORMATS['timm'].export(tiny(), heads=2)[0], tmp_path / name)
    original = open_checkpoint(tmp_path / name)
    words = f"another type than '{name}', whose layout it gets; give a name that ends in .pth"
    with rejects(words):
        export_to_source_layout(original, run_of(tiny()), tmp_path / 'again.safetensors')
