"""Images are decoded once, and what cannot be is found."""

import json
import sys
from functools import partial

import numpy as np
import pytest
from PIL import Image

from anyfolder.readers import probe_cache
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.probe import Probe, probe_images
from anyfolder.readers.probe_cache import ProbeCache

UNREAD = 'images left out, since they cannot be read'


@pytest.fixture
def images(tmp_path):
    """Images of two classes, of which one has its header and its end, and no pixels between."""
    for i in range(12):
        path = tmp_path / f'data/{"ab"[i % 2]}/{i:02}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        values = np.random.default_rng(i).integers(0, 255, (20, 30, 3))
        Image.fromarray(values.astype(np.uint8)).save(path)
    content = bytearray((tmp_path / 'data/a/06.png').read_bytes())
    content[60:-60] = bytes(len(content) - 120)
    (tmp_path / 'data/a/06.png').write_bytes(content)
    return tmp_path / 'data'


def read(images, **options):
    probes = ProbeCache(str(images), images.parent / 'run/decoded.jsonl', **options)
    found = read_class_folders(Tree(images, probes))
    unread = dict(row[::2] for row in found.findings.rows()).get(UNREAD, [])
    return len(found.train + found.val), [text.split(' (')[0] for text in unread], probes.summary


def test_all_are_decoded_by_a_check_and_a_sample_without(images, monkeypatch):
    broken = str(images / 'a/06.png')
    monkeypatch.setattr(probe_cache, 'SAMPLE', 2)  # the first and the last
    part = '2 of 12 images were decoded; decode_all=True decodes all.'
    assert read(images) == (12, [], part)
    assert not (images.parent / 'run').exists()
    checked = 11, [broken], '11 of 12 images were decoded; 1 cannot be read.'
    assert read(images, decode_all=True) == checked
    assert read(images) == checked


def test_what_was_decoded_is_not_again_unless_it_changes(images, monkeypatch):
    looked: list[str] = []

    def counted(paths, decoded):
        looked.extend(path[-6:-4] for path in paths if decoded)
        return probe_images(paths, decoded)

    monkeypatch.setattr(probe_cache, 'probe_images', counted)
    ask = partial(read, images, decode_all=True)
    first = ask()
    assert sorted(looked) == [f'{i:02}' for i in range(12)]
    looked.clear()
    assert ask() == read(images) == first
    assert not looked
    Image.new('RGB', (7, 8)).save(images / 'a/06.png')
    assert ask() == (12, [], 'All 12 images were decoded.')
    assert looked == ['06']
    file = images.parent / 'run/decoded.jsonl'
    text = file.read_text()
    file.write_text(text[:-20])  # a check that was ended
    ask()
    assert len(looked) == 2
    file.write_text(text.replace('pillow', 'another pillow', 1))
    ask()
    assert len(looked) == 14


def test_processes_see_the_same(images, monkeypatch):
    paths = sorted(images.rglob('*.png'))
    expected = ProbeCache(decode_all=True).probe(paths)
    monkeypatch.setattr(probe_cache, 'FEW', 0)
    monkeypatch.setattr(probe_cache, 'BATCH', 2)
    found = ProbeCache(decode_all=True).probe(paths)
    assert json.dumps(found) == json.dumps(expected)
    assert [path.stem for path, probe in zip(paths, found, strict=True) if probe.fault] == ['06']


CRASHING = """
import json, os, sys
for line in sys.stdin:
    paths = json.loads(line)
    if any(path.endswith('06.png') for path in paths):
        os.kill(os.getpid(), 9)
    print(json.dumps([[[1, 2], [30, 20]] for path in paths]), flush=True)
"""


@pytest.mark.skipif(sys.platform == 'win32', reason='a signal ends it')
def test_a_decoder_that_crashes_takes_its_image_alone(images, monkeypatch, tmp_path):
    (tmp_path / 'crashing_look.py').write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(probe_cache, 'FEW', 0)
    monkeypatch.setattr(probe_cache, 'BATCH', 4)
    monkeypatch.setattr(probe_images, '__module__', 'crashing_look')
    faults = [
        probe.fault for probe in ProbeCache(decode_all=True).probe(sorted(images.rglob('*.png')))
    ]
    assert sorted(faults) == [''] * 11 + ['its decoder ended with -9']


def test_faults_of_the_machine_are_not_remembered(images):
    (gone,) = probe_images([str(images / 'gone.png')], True)
    assert (gone.state, bool(gone.fault)) == ((), True)
    (broken,) = probe_images([str(images / 'a/06.png')], True)
    assert broken.state
    assert broken.fault


def test_copies_are_known_by_what_was_decoded(images):
    one, other = images / 'a/02.png', images / 'b/03.png'
    other.write_bytes(one.read_bytes())
    first, second = probe_images([str(one), str(other)], True)
    assert first.digest == second.digest != Probe().digest
    for decode_all in (False, True):
        found = read_class_folders(Tree(images, ProbeCache(str(images), decode_all=decode_all)))
        assert any('copies' in what for what, _, _ in found.findings.rows())


def test_an_image_of_two_lists_counts_once(images):
    probes = ProbeCache(decode_all=True)
    assert len(probes.probe([images / 'a/00.png'] * 2)) == 2
    assert probes.summary == 'All 1 images were decoded.'


@pytest.mark.parametrize(
    ('content', 'words'), [(b'version https://git-lfs.', 'git lfs pull'), (None, 'No such file')]
)
def test_what_stands_for_an_image_is_named(images, content, words):
    path = images / 'a/x.png'
    path.write_bytes(content) if content else path.symlink_to('gone.png')
    Image.new('L', (8, 8)).save(images / 'a/raw.nef', 'TIFF', tiffinfo={254: 1})
    said = str(read_class_folders(Tree(images)).findings.rows())
    assert words in said
    assert 'raw.nef' in said  # which begins with a smaller copy
