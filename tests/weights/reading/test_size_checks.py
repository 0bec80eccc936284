"""Small checkpoints that would need much time or memory are refused before they use it."""

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import TINY

from anyfolder.limits import LIMITS
from anyfolder.pixels import arrays
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import open_checkpoint, recognize
from vit_plugin.weights.hub_files import HUB_CONFIG, HUB_WEIGHTS
from vit_plugin.weights.reading import size_checks
from vit_plugin.weights.reading.files import read_checkpoint
from vit_plugin.weights.reading.shards import INDEX
from vit_plugin.weights.saved_settings import literals

NESTED = '[' * 100_000 + ']' * 100_000


def header(names: list[str]) -> bytes:
    """A file of safetensors with empty tensors of these names."""
    empty = dict(dtype='F32', shape=[0], data_offsets=[0, 0])
    content = json.dumps(dict.fromkeys(names, empty)).encode()
    return struct.pack('<Q', len(content)) + content


def test_safetensors_with_too_long_headers_are_refused(tmp_path):
    path = tmp_path / 'x.safetensors'
    path.write_bytes(header([f'blocks.{i}.attn.qkv.weight' for i in range(10_001)]))
    with rejects(r'x\.safetensors. has more than 10,000 tensors'):
        _ = open_checkpoint(path).weights
    path.write_bytes(struct.pack('<Q', 50 << 20) + b'{')
    with rejects('bytes of names and shapes'):
        read_checkpoint(path)


def test_recognition_takes_time_in_proportion_to_the_names(monkeypatch):
    """A name is only compared with rules that begin or end like it."""
    from vit_plugin.weights import patterns

    matches = 0
    match = patterns.Pattern.match

    def counted(self, key):
        nonlocal matches
        matches += 1
        return match(self, key)

    monkeypatch.setattr(patterns.Pattern, 'match', counted)
    weights = {f'blocks.{i}.attn.qkv.weight': torch.zeros(3) for i in range(500)}
    assert recognize(weights).format.name == 'vit_plugin'
    assert matches < 200 * len(weights)


def test_highly_compressed_npz_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / 'x.npz'
    np.savez_compressed(path, kernel=np.zeros((1 << 10, 1 << 10), np.float32))
    assert read_checkpoint(path)['kernel'].shape == (1 << 10, 1 << 10)
    monkeypatch.setattr(arrays, 'UNPACKED_BYTES', 1 << 20)
    with rejects(r'x\.npz. has more than 20 times the bytes of its file, unpacked'):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'\x80\x02N' + b'r' + struct.pack('<I', 2**31 - 1) + b'.', 'asks for a table of 2,147'),
        (b'\x80\x05\x96' + struct.pack('<Q', 2**40) + b'.', 'not enough memory to read'),
        (b'\x80\x04\x8e' + struct.pack('<Q', 2**33) + b'.', 'cannot be read'),
    ],
    ids=['memo', 'bytearray', 'bytes'],
)
def test_plain_pickles_with_huge_allocations_are_refused(tmp_path, content, words):
    (tmp_path / 'x.pkl').write_bytes(content)
    with rejects(words):
        read_checkpoint(tmp_path / 'x.pkl')


@pytest.mark.parametrize('zipped', [True, False])
def test_pickles_of_torch_with_too_many_operations_are_refused(tmp_path, monkeypatch, zipped):
    path = tmp_path / 'x.pth'
    torch.save(
        dict(state_dict=dict(a=torch.ones(2)), meta=[[] for _ in range(50_000)]),
        path,
        _use_new_zipfile_serialization=zipped,
    )
    assert read_checkpoint(path)['state_dict']['a'].tolist() == [1, 1]
    monkeypatch.setitem(size_checks.WEIGHT_LIMITS, 'operations of a pickle', 50_000)
    with rejects(r'x\.pth. has more than 50,000 operations of a pickle'):
        read_checkpoint(path)


def test_archives_with_overlapping_members_are_refused(tmp_path):
    """All members refer to the same bytes, so reading each takes far more than the file's size."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, 'w') as archive:
        archive.writestr('x/data.pkl', pickle.dumps({}, 2))
        archive.writestr('x/data/0', bytes(10_000))
        first = archive.infolist()[1]
        for i in range(1, 20):
            other = zipfile.ZipInfo(f'x/data/{i}')
            for field in ('header_offset', 'file_size', 'compress_size', 'CRC'):
                setattr(other, field, getattr(first, field))
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    (tmp_path / 'x.pth').write_bytes(content.getvalue())
    with rejects('and parts of 200,0.. in them; it is damaged or hostile'):
        read_checkpoint(tmp_path / 'x.pth')


def test_adapters_larger_than_their_layer_are_refused(tmp_path):
    layer = 'blocks.0.attn.qkv'
    weights = {
        f'{layer}.base_layer.weight': torch.zeros(1, 1),
        f'{layer}.lora_A.default.weight': torch.zeros(1, 60_000),
        f'{layer}.lora_B.default.weight': torch.zeros(60_000, 1),
    }
    torch.save(dict(state_dict=weights, meta=dict(lora=dict(r=1, alpha=1))), tmp_path / 'x.pth')
    with rejects(r'adapters .*\(1, 60000\) and .* are not of a layer \(1, 1\)'):
        _ = open_checkpoint(tmp_path / 'x.pth').weights


def test_stacked_arrays_of_a_million_blocks_are_refused():
    kernel = torch.zeros(1_000_000, 1, dtype=torch.uint8)
    with rejects('more than 10,000 tensors'):
        recognize({'Transformer/encoderblock/LayerNorm_0/scale': kernel})


def test_patches_of_over_a_thousand_pixels_are_refused(tmp_path):
    model = VisionTransformer(TINY, img_size=16)
    state = model.state_dict()
    kernel = state['patch_embed.proj.weight']
    state['patch_embed.proj.weight'] = torch.zeros(*kernel.shape[:2], 20_000, 1)
    with rejects('more than 1,024 pixels of a patch at a side'):
        load_weights(model, state)


def test_deeply_nested_json_next_to_weights_is_refused(tmp_path):
    save_file({'a': torch.zeros(1)}, tmp_path / HUB_WEIGHTS)
    (tmp_path / HUB_CONFIG).write_text(NESTED)
    with rejects('config.json. has more than 100 levels of JSON'):
        open_checkpoint(tmp_path)
    (tmp_path / HUB_CONFIG).write_text('{}')
    Path(tmp_path, HUB_WEIGHTS).unlink()
    (tmp_path / INDEX).write_text(NESTED)
    with rejects(f'{INDEX}. has more than 100 levels of JSON'):
        open_checkpoint(tmp_path)
    (tmp_path / 'manifest.json').write_text(NESTED)
    with rejects('manifest.json. has more than 100 levels of JSON'):
        read_checkpoint(tmp_path)


def test_configs_of_a_million_lines_are_refused():
    with rejects('more than 4,000,000 characters of a config'):
        literals('a = [[],[],\n' * 500_000)


def test_limits_of_data_and_weights_have_different_names():
    assert LIMITS.keys().isdisjoint(size_checks.WEIGHT_LIMITS)
