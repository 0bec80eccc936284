"""Images are decoded once, and those that cannot be read are found."""

import json
import sys
from functools import partial
from pathlib import Path

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
    """Twelve images of two classes; in 06.png, the pixels between header and end are zeroed."""
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
    """The number of images that are kept, the paths of the unreadable ones, and the summary."""
    probes = ProbeCache(str(images), images.parent / 'run/decoded.jsonl', **options)
    listing = read_class_folders(Tree(images, probes))
    examples_of = {what: examples for what, _, examples in listing.findings.rows()}
    unread = [example.split(' (')[0] for example in examples_of.get(UNREAD, [])]
    return len(listing.train + listing.val), unread, probes.summary


def test_a_sample_is_decoded_unless_all_are_asked_for(images, monkeypatch):
    broken = str(images / 'a/06.png')
    monkeypatch.setattr(probe_cache, 'SAMPLE', 2)  # the first and the last
    summary = '2 of 12 images were decoded; decode_all=True decodes all.'
    assert read(images) == (12, [], summary)
    assert not (images.parent / 'run').exists()
    all_decoded = 11, [broken], '11 of 12 images were decoded; 1 cannot be read.'
    assert read(images, decode_all=True) == all_decoded
    assert read(images) == all_decoded  # from the cache


def test_images_are_decoded_again_only_if_they_change(images, monkeypatch):
    numbers: list[str] = []  # of the images that are decoded

    def recorded(paths, fully_decoded):
        numbers.extend(Path(path).stem for path in paths if fully_decoded)
        return probe_images(paths, fully_decoded)

    monkeypatch.setattr(probe_cache, 'probe_images', recorded)
    read_all = partial(read, images, decode_all=True)
    first = read_all()
    assert sorted(numbers) == [f'{i:02}' for i in range(12)]
    numbers.clear()
    assert read_all() == read(images) == first
    assert not numbers
    Image.new('RGB', (7, 8)).save(images / 'a/06.png')
    assert read_all() == (12, [], 'All 12 images were decoded.')
    assert numbers == ['06']
    numbers.clear()
    file = images.parent / 'run/decoded.jsonl'
    text = file.read_text()
    file.write_text(text[:-20])  # an interrupted run, whose last line is incomplete
    read_all()
    assert len(numbers) == 1
    numbers.clear()
    file.write_text(text.replace('pillow', 'another pillow', 1))  # decoded by another version
    read_all()
    assert len(numbers) == 12


def test_processes_return_the_same_probes(images, monkeypatch):
    paths = sorted(images.rglob('*.png'))
    expected = ProbeCache(decode_all=True).probe(paths)
    monkeypatch.setattr(probe_cache, 'MAX_IN_THREADS', 0)  # so that processes are started
    monkeypatch.setattr(probe_cache, 'BATCH', 2)
    probes = ProbeCache(decode_all=True).probe(paths)
    assert json.dumps(probes) == json.dumps(expected)
    assert [path.stem for path, probe in zip(paths, probes, strict=True) if probe.fault] == ['06']


# In place of the module that decodes images: a process that ends at 06.png, and answers with a
# `Probe`'s first two fields, state and size, for other images.
CRASHING = """
import json, os, sys
for line in sys.stdin:
    paths = json.loads(line)
    if any(path.endswith('06.png') for path in paths):
        os.kill(os.getpid(), 9)
    print(json.dumps([[[1, 2], [30, 20]] for path in paths]), flush=True)
"""


@pytest.mark.skipif(sys.platform == 'win32', reason='a signal ends the process')
def test_crash_of_a_decoder_affects_only_its_image(images, monkeypatch, tmp_path):
    (tmp_path / 'crashing_probe.py').write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(probe_cache, 'MAX_IN_THREADS', 0)
    monkeypatch.setattr(probe_cache, 'BATCH', 4)
    monkeypatch.setattr(probe_images, '__module__', 'crashing_probe')
    probes = ProbeCache(decode_all=True).probe(sorted(images.rglob('*.png')))
    faults = [probe.fault for probe in probes]
    assert sorted(faults) == [''] * 11 + ['its decoder ended with -9']


def test_faults_of_the_machine_are_not_remembered(images):
    [missing] = probe_images([str(images / 'missing.png')], True)
    assert missing.state == ()  # so it is probed again
    assert missing.fault
    [broken] = probe_images([str(images / 'a/06.png')], True)
    assert broken.state
    assert broken.fault


def test_copies_have_the_same_digest(images):
    image, copy = images / 'a/02.png', images / 'b/03.png'
    copy.write_bytes(image.read_bytes())
    probe, probe_of_copy = probe_images([str(image), str(copy)], True)
    assert probe.digest == probe_of_copy.digest != Probe().digest
    for decode_all in (False, True):
        listing = read_class_folders(Tree(images, ProbeCache(str(images), decode_all=decode_all)))
        assert any('copies' in what for what, _, _ in listing.findings.rows())


def test_image_that_is_probed_twice_counts_once(images):
    probes = ProbeCache(decode_all=True)
    assert len(probes.probe([images / 'a/00.png'] * 2)) == 2
    assert probes.summary == 'All 1 images were decoded.'


@pytest.mark.parametrize(
    ('content', 'words'), [(b'version https://git-lfs.', 'git lfs pull'), (None, 'No such file')]
)
def test_placeholders_of_images_are_reported(images, content, words):
    path = images / 'a/x.png'
    if content:
        path.write_bytes(content)
    else:
        path.symlink_to('missing.png')
    # a raw photograph, which begins with a smaller copy
    Image.new('L', (8, 8)).save(images / 'a/raw.nef', 'TIFF', tiffinfo={254: 1})
    notes = str(read_class_folders(Tree(images)).findings.rows())
    assert words in notes
    assert 'raw.nef' in notes
