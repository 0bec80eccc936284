"""Checkpoint folders are read only if they are complete, and without running code."""

import pytest
import torch
from rejection import rejects

from benchmarks import corruption
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading.files import read_checkpoint
from vit_plugin.weights.reading.folders import FORMAT, VERSION, manifest_text

pytest.importorskip('torch', minversion='2.9')
pytestmark = pytest.mark.filterwarnings('ignore:torch.distributed is disabled')


@pytest.mark.parametrize(
    ('damage', 'every'),
    [
        (corruption.change_every_byte, 17),
        (corruption.cut_every_file, 41),
        (corruption.end_at_every_byte, 83),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, every):
    assert damage(tmp_path, every) > 20


def test_planted_files_are_refused(tmp_path):
    assert corruption.plant(tmp_path) > 10


@pytest.mark.parametrize(
    ('name', 'content', 'words'),
    [
        ('manifest.json', None, 'is not a checkpoint of vit_plugin: it has no manifest.json; give'),
        (
            'manifest.json',
            '{"format": "vit_plugin checkpoint", "version": 7}',
            'version 7 .* reads version 1 .*install',
        ),
        ('run.json', None, 'run.json is missing.; take one from before'),
        ('run.json', '{}', 'run.json has 2 bytes instead of'),
    ],
)
def test_errors_name_the_fault(tmp_path, name, content, words):
    _, newest = corruption.make(tmp_path)
    if content is None:
        (newest / name).unlink()
    else:
        (newest / name).write_text(content)
    with rejects(words):
        open_checkpoint(newest)


def test_complete_folders_are_read(tmp_path):
    _, newest = corruption.make(tmp_path)
    assert torch.equal(open_checkpoint(newest).weights['weight'], torch.full((3, 2), 2.0))
    assert read_checkpoint(newest)['meta']['iter'] == 8


def test_writing_again_replaces_the_folder(tmp_path):
    _, newest = corruption.make(tmp_path)
    corruption.write(newest, 5.0)
    assert open_checkpoint(newest).weights['weight'][0, 0] == 5
    assert newest_checkpoint(tmp_path) == str(newest)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        'epoch_1',
        'epoch_2',
        'last_checkpoint',
    ]


def test_damaged_files_are_read_correctly_or_refused(tmp_path):
    counts = corruption.damage_files(tmp_path, 97)
    # safetensors has no checksum, as the docs say.
    assert counts.pop('.safetensors, a byte changed')['else'] > 0
    assert not sum(results['else'] for results in counts.values()), counts
    stored = counts['.pth, packed again (stored)']
    assert (stored['right'], stored['rejected']) == (3, 0)
    assert counts['.pth, packed again (deflated)']['rejected'] == 3


@pytest.mark.parametrize('files', [None, [], {'run.json': 3}, {'run.json': {'bytes': 2}}, {}])
def test_manifests_without_a_valid_list_of_files_are_refused(tmp_path, files):
    _, newest = corruption.make(tmp_path)
    facts = dict(format=FORMAT, version=VERSION, **({} if files is None else dict(files=files)))
    (newest / 'manifest.json').write_text(manifest_text(facts))
    with rejects('manifest.json does not list the files with their bytes and sha256'):
        open_checkpoint(newest)
