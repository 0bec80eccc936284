"""Records of where weights come from, and the licenses that their owners state."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from vit_plugin.weights import open_checkpoint
from vit_plugin.weights.carried_records import (
    address_record,
    append_record,
    carried_record,
    exported_record,
    file_record,
)
from vit_plugin.weights.licenses import OWNED, find_owned, license_kind
from vit_plugin.weights.provenance import (
    MAX_DEPTH,
    PROVENANCE_KEY,
    Provenance,
    converted_record,
    initial_weights,
    made_of,
    read_record,
    read_text_record,
)

LITE = Provenance('lite.pth', 'apache-2.0', 'its page', 'ab' * 32)
DINOV3 = Provenance('dinov3.pth', 'dinov3-license')
CHAIN = made_of('distilled', 'run.pth', [('start', LITE), ('teacher', DINOV3)])


def test_records_survive_a_round_trip():
    assert read_text_record(CHAIN.text()) == CHAIN
    assert read_record(CHAIN.plain()) == CHAIN
    assert read_text_record('') is None


def nested_record(levels: int) -> dict:
    """A record with so many levels below it, as plain values."""
    record = dict(source='x')
    for _ in range(levels):
        record = dict(source='x', links=[dict(part='start', of=record)])
    return record


def repeated_record(levels: int) -> dict:
    """A record that has each level below it twice, as the same dict."""
    record = dict(source='x')
    for _ in range(levels):
        record = dict(source='x', links=[dict(part='start', of=record)] * 2)
    return record


@pytest.mark.parametrize(
    'hostile',
    [
        None,
        3,
        'text',
        [],
        dict(source=3),
        dict(source='x' * 501),
        dict(source='x', links=3),
        dict(source='x', links=[3]),
        dict(source='x', links=[dict(part=1, of=dict(source='y'))]),
        dict(source='x', links=[dict(part='start', of=None)]),
        nested_record(MAX_DEPTH + 1),
        repeated_record(20),
    ],
)
def test_invalid_records_are_ignored(hostile):
    assert read_record(hostile) is None
    assert read_text_record('{' + '"a":{' * 100_000) is None
    assert read_record(nested_record(MAX_DEPTH)) is not None


def test_printed_chains_end_with_licenses_that_are_not_permissive():
    lines = [*CHAIN.lines()]
    assert [line.split(':')[0] for line in lines[:3]] == ['run.pth', '  start', '  teacher']
    assert lines[1] == f'  start: lite.pth: apache-2.0 (its page); sha256 {LITE.sha256}'
    assert lines[3] == ('Not permissive: dinov3.pth: dinov3-license, which has terms of its own.')
    permissive = made_of('trained', 'run.pth', [('start', LITE)])
    assert permissive.concerns() == []
    assert [*permissive.lines()][-2:] == [
        'Each license that is stated in this chain is permissive.',
        'The license of the training data is not stated.',
    ]
    data = ('data', Provenance('the training data', 'cc-by-4.0'))
    stated = made_of('trained', 'run.pth', [('start', LITE), data])
    assert [*stated.lines()][-1] == 'Each license that is stated in this chain is permissive.'
    unknown = made_of('trained', 'run.pth', [('start', Provenance('found.pth'))])
    assert unknown.concerns() == ['found.pth: no license is known']


@pytest.mark.parametrize(
    ('license', 'kind'),
    [
        ('apache-2.0', 'permissive'),
        ('MIT', 'permissive'),
        ('', 'unknown'),
        ('other', 'unknown'),
        ('not stated', 'unknown'),
        ('cc-by-nc-4.0', 'noncommercial'),
        ('gpl-3.0', 'own terms'),
        ('apple-amlr', 'noncommercial'),
        ('dinov3-license', 'own terms'),
        ('fair-noncommercial-research-license', 'noncommercial'),
    ],
)
def test_licenses_are_classified(license, kind):
    assert license_kind(license) == kind


def write_torch(path: Path) -> None:
    torch.save({'norm.weight': torch.arange(4.0)}, path)


def write_numpy(path: Path) -> None:
    np.savez(path, **{'norm.weight': np.arange(4.0, dtype='float32')})


@pytest.mark.parametrize(('name', 'write'), [('x.pth', write_torch), ('x.npz', write_numpy)])
def test_archives_with_a_record_stay_readable(name, write, tmp_path):
    path = tmp_path / name
    write(path)
    assert file_record(path) is None
    append_record(path, CHAIN)
    assert file_record(path) == carried_record(open_checkpoint(path)) == CHAIN
    read = open_checkpoint(path).weights
    plain = np.load(path) if name == 'x.npz' else torch.load(path, weights_only=True, mmap=True)
    assert [*read] == [*plain] == ['norm.weight']
    assert torch.equal(read['norm.weight'], torch.as_tensor(plain['norm.weight']))


def test_our_checkpoints_carry_a_record(tmp_path):
    path = tmp_path / 'epoch_1.pth'
    torch.save(dict(meta={PROVENANCE_KEY: CHAIN.plain()}, state_dict={'a': torch.ones(1)}), path)
    record = address_record(str(path))
    assert (record.source, record.links) == ('epoch_1.pth', CHAIN.links)
    assert re.fullmatch('[0-9a-f]{64}', record.sha256)
    kept = converted_record(record, 'small.pth')
    assert (kept.source, kept.made, kept.license) == ('small.pth', 'converted', '')
    assert kept.links == (('start', record),)
    assert converted_record(record, 'small.pth', 'mit').license == 'mit'


def test_licenses_of_foreign_weights_are_known_by_name_or_card(tmp_path):
    record = address_record('timm://vit_base_patch16_224.mae')
    assert (record.license, record.stated) == ('cc-by-nc-4.0', 'timm')
    assert record.concerns() == [
        'timm://vit_base_patch16_224.mae: cc-by-nc-4.0, which excludes commercial use'
    ]
    known = tmp_path / 'mae_pretrain_vit_base.pth'
    write_torch(known)
    assert address_record(str(known)).license == 'cc-by-nc-4.0'
    assert str(tmp_path) not in address_record(str(known)).text()
    unknown = known.rename(tmp_path / 'found.pth')
    assert address_record(str(unknown)).license == ''
    (tmp_path / 'README.md').write_text('---\nlicense: other\nlicense_name: "x-1"\n---\n# Y\n')
    assert address_record(str(unknown)).license == 'x-1'
    (tmp_path / 'README.md').write_text('# The code\n\nlicense: mit\n')
    assert address_record(str(unknown)).license == ''


def test_a_card_next_to_an_exported_file_states_its_license():
    record = exported_record(Path('vit_plugin/inference/demo_model/shapes.onnx'))
    assert (record.source, record.license, record.stated) == (
        'shapes.onnx',
        'apache-2.0',
        'README.md',
    )


def test_records_without_download_fetch_nothing(monkeypatch):
    monkeypatch.setattr('vit_plugin.weights.opening.download', None)  # a call would raise
    address = 'https://dl.fbaipublicfiles.com/mae/pretrain/mae_pretrain_vit_none.pth'
    record = address_record(address, download=False)
    assert (record.source, record.license, record.sha256) == (address, 'cc-by-nc-4.0', '')


def test_unreadable_files_have_a_record_with_their_name():
    assert address_record('no/such.pth') == Provenance('such.pth')


def test_sources_of_weights_in_a_config():
    settings = dict(
        load_from='a.pth',
        default_hooks=dict(checkpoint=dict(interval=1)),
        model=dict(
            backbone=dict(arch='timm://x', init_cfg=dict(type='Pretrained', checkpoint=True)),
            teacher=dict(source='run', head=[dict(init_cfg=dict(checkpoint='b.pth'))]),
            neck=[dict(patch_embed=dict(pretrained=True, model_name='resnet50'))],
            adapter=dict(init_cfg=[dict(type='Pretrained', checkpoint='a/b.npz')]),
            second=dict(arch='timm://y', init_cfg=[dict(type='Pretrained', checkpoint=True)]),
            third=dict(type='TimmEmbed', model_name='timm://resnet18', pretrained=True),
            fourth=dict(arch='resnet26+Ti/16', patch_embed=dict(pretrained=True)),
        ),
        begin_from=None,
    )
    assert [*initial_weights(settings)] == [
        ('start', 'a.pth'),
        ('teacher', 'run'),
        ('start', 'timm://x'),
        ('teacher', 'b.pth'),
        ('start', 'timm://resnet50'),
        ('start', 'a/b.npz'),
        ('start', 'timm://y'),
        ('start', 'timm://resnet18'),
        ('start', 'timm://resnet26'),
    ]
    assert [*initial_weights(dict(model=dict(teacher='hf://x/y')))] == [('teacher', 'hf://x/y')]


def test_docs_have_the_table_of_owners():
    rows = [
        f'| {row.weights} | {row.license or "not stated"} | {license_kind(row.license)} | '
        f'[{row.page.split("/")[2]}]({row.page}), {row.read_on} |'
        for row in OWNED
    ]
    page = Path('docs/weights.md').read_text()
    assert [line for line in page.splitlines() if line in rows] == rows


@pytest.mark.parametrize(
    ('address', 'license'),
    [
        ('https://storage.googleapis.com/vit_models/augreg/x.npz', 'apache-2.0'),
        ('efficientnet-lite2-f67a4571.pth', 'apache-2.0'),
        ('hf://facebook/dinov3-vits16-pretrain-lvd1689m', 'dinov3-license'),
        ('https://dl.fbaipublicfiles.com/mae/pretrain/mae_pretrain_vit_base.pth', 'cc-by-nc-4.0'),
        ('hf://nvidia/C-RADIOv3-B', 'nvidia-open-model-license'),
    ],
)
def test_addresses_have_the_license_of_their_owner(address, license):
    assert find_owned([address]).license == license
    assert find_owned(['https://example.org/x.pth']) is None
