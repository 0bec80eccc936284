"""``convert`` writes the same tensors under other names, in other files and other dtypes."""

import numpy as np
import pytest
import torch
from authors import FOLDER, NAMES, Golden

from vit_plugin.models import VisionTransformer
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading.files import read_checkpoint


@pytest.fixture
def convert(run_command):
    def run(checkpoint, out, *arguments):
        return run_command(f'convert {checkpoint} --out {out}', *arguments)

    return run


@pytest.fixture(scope='module', params=['vit_token_prelogits', 'hybrid_two_stages'])
def npz(request, tmp_path_factory):
    """A file with the weights of a recorded model of the authors, and the record itself."""
    golden = Golden(request.param)
    path = tmp_path_factory.mktemp('weights') / 'weights.npz'
    np.savez(
        path,
        **{
            key.removeprefix('params/'): value
            for key, value in golden.arrays.items()
            if key.startswith('params/')
        },
    )
    return path, golden


@pytest.mark.parametrize('format_name', ['vit_plugin', 'timm'])
def test_round_trip_of_npz_files(convert, npz, tmp_path, format_name):
    path, golden = npz
    heads = ['--num-heads', golden.meta['heads']]
    done = convert(path, tmp_path / 'there.safetensors', '--to', format_name)
    assert done.returncode == 0, done.stderr
    assert 'from the format jax' in done.stdout
    # The intermediate file does not state the number of heads.
    done = convert(tmp_path / 'there.safetensors', tmp_path / 'back.npz', '--to', 'jax', *heads)
    assert done.returncode == 0, done.stderr
    before, after = open_checkpoint(path).weights, open_checkpoint(tmp_path / 'back.npz').weights
    # timm has no name for pre_logits.
    unnamed = (
        {key for key in before if key.startswith('pre_logits')} if format_name == 'timm' else set()
    )
    assert set(after) == set(before) - unnamed
    for key in after:
        assert (before[key] == after[key]).all(), key


def test_tensors_without_a_name_in_the_format_raise(convert, tmp_path, tiny):
    model = VisionTransformer(**tiny, encoder=dict(layer_scale_init_value=0.1))
    torch.save(model.state_dict(), tmp_path / 'weights.pth')
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.npz', '--to', 'jax', '--num-heads', 2)
    assert done.returncode == 1
    assert 'no name for blocks.0.ls1.gamma' in done.stderr
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.npz', '--to', 'jax')
    assert 'the width 32 is not a usual one; give --num-heads' in done.stderr
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.npz', '--to', 'jax', '--num-heads', 3)
    assert '3 attention heads do not divide the width 32' in done.stderr
    assert not (tmp_path / 'x.npz').exists()


def test_the_number_of_heads_comes_from_the_config_or_is_assumed_with_a_note(convert, tmp_path):
    arch = dict(embed_dims=384, num_layers=1, num_heads=12, feedforward_channels=8, patch_size=8)
    state = VisionTransformer(arch, img_size=16).state_dict()
    config = f"model = dict(backbone=dict(type='vit_plugin.VisionTransformer', arch={arch}))"
    for meta, heads, noted in ((dict(cfg=config), 12, False), ({}, 6, True)):
        torch.save(
            dict(meta=meta, state_dict={f'backbone.{key}': state[key] for key in state}),
            tmp_path / 'x.pth',
        )
        done = convert(tmp_path / 'x.pth', tmp_path / 'x.npz', '--to', 'jax')
        assert done.returncode == 0, done.stderr
        assert ('6 attention heads, as usual for the width 384' in done.stdout) == noted
        written = open_checkpoint(tmp_path / 'x.npz').weights
        (kernel,) = (written[key] for key in written if key.endswith('query/kernel'))
        assert kernel.shape == (384, heads, 384 // heads)


@pytest.mark.parametrize(
    ('change', 'written', 'key'),
    [
        ({}, 'hf', 'vit.embeddings.cls_token'),
        (dict(encoder=dict(dist_token=1)), 'hf_deit', 'deit.embeddings.distillation_token'),
        (
            dict(encoder=dict(layer_scale_init_value=1.0, gated_mlp=True)),
            'hf_dinov2',
            'encoder.layer.1.mlp.weights_in.weight',
        ),
    ],
)
def test_format_hf_chooses_the_names_for_the_model(convert, tmp_path, tiny, change, written, key):
    torch.save(VisionTransformer(**tiny, **change).state_dict(), tmp_path / 'weights.pth')
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.safetensors', '--to', 'hf')
    assert done.returncode == 0, done.stderr
    assert f'from the format vit_plugin to {written}: ' in done.stdout
    assert key in open_checkpoint(tmp_path / 'x.safetensors').weights


def test_bfloat16_is_converted_to_npz(convert, tmp_path, tiny):
    torch.save(VisionTransformer(**tiny).bfloat16().state_dict(), tmp_path / 'weights.pth')
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.npz', '--to', 'jax', '--num-heads', 2)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ('suffix', 'dtype'), [('.pth', 'bfloat16'), ('.safetensors', 'float16'), ('.npz', 'float16')]
)
def test_dtype_converts_floats_only(convert, tmp_path, tiny, suffix, dtype):
    # The counter is too large for float16.
    weights = {**VisionTransformer(**tiny).state_dict(), 'steps': torch.tensor(70_000)}
    torch.save(dict(state_dict=weights, meta=dict(cfg='model = dict()')), tmp_path / 'weights.pth')
    done = convert(tmp_path / 'weights.pth', tmp_path / f'x{suffix}', '--dtype', dtype)
    assert done.returncode == 0, done.stderr
    after = open_checkpoint(tmp_path / f'x{suffix}').weights
    assert after['steps'] == 70_000
    assert all(
        torch.equal(after[name], value.to(getattr(torch, dtype)))
        for name, value in weights.items()
        if name != 'steps'
    )
    if suffix == '.pth':
        meta = read_checkpoint(tmp_path / 'x.pth')['meta']
        assert meta.pop('provenance')['links'][0]['of']['source'] == 'weights.pth'
        assert meta == dict(cfg='model = dict()')


@pytest.mark.nightly
def test_runs_are_converted_to_folders_of_a_hub(convert, run_command, digits_config, tmp_path):
    digits_config.train_cfg.max_epochs = 1
    digits_config.dump(tmp_path / 'config.py')
    assert run_command('train', tmp_path / 'config.py').returncode == 0
    done = convert(tmp_path / 'work', tmp_path / 'digits', '--license', 'cc0-1.0')
    assert done.returncode == 0, done.stderr
    assert 'since timm has no stem like it' in done.stdout
    assert {path.name for path in (tmp_path / 'digits').iterdir()} > {
        'README.md',
        'config.json',
        'model.safetensors',
    }
    done = convert(tmp_path / 'digits', tmp_path / 'again.pth')
    assert done.returncode == 0, done.stderr
    before, after = (
        open_checkpoint(tmp_path / 'work/epoch_1.pth').weights,
        open_checkpoint(tmp_path / 'again.pth').weights,
    )
    assert before.keys() == after.keys()


def test_invalid_calls_raise(convert, tmp_path):
    golden = FOLDER / f'{NAMES[0]}.npz'
    for arguments, words in (
        ([golden, tmp_path / 'x.txt'], 'must end in one of .npz'),
        ([golden, tmp_path / 'x.pth', '--private'], '--private needs --out hf://*'),
        ([tmp_path / 'none.npz', tmp_path / 'x.pth'], 'There is no checkpoint file'),
    ):
        done = convert(*arguments, '--to', 'timm')
        assert done.returncode == 1
        assert words in done.stderr


def test_into_writes_trained_weights_in_the_layout_of_the_source(convert, tmp_path, tiny):
    state = VisionTransformer(**tiny).state_dict()
    torch.save(state | {'other.weight': torch.ones(2)}, tmp_path / 'original.pth')
    trained = {f'backbone.{name}': value for name, value in state.items()}
    trained['backbone.cls_token'] = state['cls_token'] + 1
    torch.save(dict(meta={}, state_dict=trained), tmp_path / 'run.pth')
    into = [tmp_path / 'run.pth', tmp_path / 'again.pth', '--into', tmp_path / 'original.pth']
    done = convert(*into)
    assert done.returncode == 0, done.stderr
    assert f'again.pth: 1 of the {len(state) + 1} tensors of' in done.stdout
    written = torch.load(tmp_path / 'again.pth')
    assert torch.equal(written['cls_token'], trained['backbone.cls_token'])
    assert torch.equal(written['other.weight'], torch.ones(2))
    done = convert(*into, '--dtype', 'float16')
    assert done.stderr.startswith('Error: --dtype does not go with --into; the names and types are')


def test_converting_a_file_onto_itself_raises(convert, tmp_path, tiny):
    path = tmp_path / 'weights.pth'
    torch.save(VisionTransformer(**tiny).state_dict(), path)
    before = path.read_bytes()
    (tmp_path / 'link.pth').symlink_to('weights.pth')
    for target in (path, tmp_path / 'link.pth'):
        done = convert(path, target, '--to', 'vit_plugin')
        assert done.returncode == 1
        assert 'would be overwritten while it is read; give another file' in done.stderr
        assert path.read_bytes() == before


@pytest.mark.parametrize('to', [(), ('--to', 'timm')])
@pytest.mark.parametrize(
    ('value', 'dtype', 'words'),
    [
        (float('nan'), (), "has infinite values or NaN in 'norm.weight'; give one that was saved"),
        (1e6, ('--dtype', 'float16'), "in 'norm.weight'; --dtype float16 cannot hold its values"),
    ],
)
def test_infinite_weights_are_not_written(convert, tmp_path, tiny, to, value, dtype, words):
    model = VisionTransformer(**tiny)
    torch.nn.init.constant_(model.norm.weight, value)
    torch.save(model.state_dict(), tmp_path / 'weights.pth')
    done = convert(tmp_path / 'weights.pth', tmp_path / 'x.safetensors', *to, *dtype)
    assert done.returncode == 1
    assert words in done.stderr
    assert not (tmp_path / 'x.safetensors').exists()
