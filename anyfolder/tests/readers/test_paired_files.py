"""Which image each label file belongs to, and which of several files of an image is read."""

from pathlib import Path

import pytest

from anyfolder.readers.findings import Findings
from anyfolder.readers.identity import Index
from anyfolder.readers.paired_files import pair_files

DATA = Path('data')


def paths(text: str) -> list[Path]:
    return [DATA / name for name in text.split()]


def pairs_of(images: str, labels: str) -> tuple[dict[str, str], list[str]]:
    """The image of each label file, and the findings."""
    findings = Findings()
    files = {file: [file.stem] for file in paths(labels)}
    found = pair_files(Index(DATA, paths(images)), files, findings)
    names = {
        file.relative_to(DATA).as_posix(): image.relative_to(DATA).as_posix()
        for file, image in found.image_of.items()
    }
    return names, [what for what, _, _ in findings.rows()]


@pytest.mark.parametrize(
    ('images', 'label'),
    [
        ('cam1/0.jpg cam2/0.jpg', 'labels/0.txt'),
        ('train/0.jpg val/0.jpg', 'annotations/0.xml'),
        ('images/0.jpg images/0.png', 'labels/0.txt'),
    ],
)
def test_labels_that_match_two_images_are_reported_with_both(images, label):
    findings = Findings()
    pairs = pair_files(Index(DATA, paths(images)), {DATA / label: [Path(label).stem]}, findings)
    assert not pairs.image_of
    what, count, examples = findings.rows()[0]
    assert 'labels match several images' in what
    assert count == 1
    assert all(str(path) in examples[0] for path in paths(images))


@pytest.mark.parametrize(
    ('labels', 'nearest'),
    [
        ('labels/0.txt labels_old/0.txt', 'labels/0.txt'),
        ('labels/0.txt archive/labels/0.txt', 'labels/0.txt'),
        ('labels_backup/0.txt labels/0.txt', 'labels/0.txt'),
        ('images/sub/0.txt images/0.txt', 'images/0.txt'),
        ('json/0.json json_v2/0.json json_v1/0.json', 'json/0.json'),
    ],
)
def test_nearest_of_several_label_files_is_read(labels, nearest):
    image_of, notes = pairs_of('images/0.jpg', labels)
    assert image_of == {nearest: 'images/0.jpg'}
    assert notes == ['label files left out, since a nearer one exists for the image']


def write(folder: Path, name: str, text: str = '') -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    'folders', [('images', 'labels'), ('labels_v1', 'labels_v2'), ('one', 'two')]
)
def test_equally_near_label_files_are_unclear_unless_they_are_equal(tmp_path, folders):
    files = [write(tmp_path, f'{folder}/0.txt', folder) for folder in folders]
    index, findings = Index(tmp_path, [tmp_path / 'images/0.jpg']), Findings()
    pairs = pair_files(index, {file: ['0'] for file in files}, findings)
    assert (pairs.image_of, pairs.conflicting) == ({}, {tmp_path / 'images/0.jpg'})
    _, _, examples = findings.rows()[0]
    assert all(str(file) in examples[0] for file in files)
    for file in files:
        file.write_text('the same')
    findings = Findings()
    assert len(pair_files(index, {file: ['0'] for file in files}, findings).image_of) == 1
    what = 'label files left out, since another one of the image is equal'
    assert findings.rows() == [(what, 1, [f'{files[1]}, not {files[0]}'])]


def test_all_equally_near_label_files_are_compared(tmp_path):
    texts = dict(one='same', three='same', two='another')
    files = [write(tmp_path, f'{folder}/0.txt', text) for folder, text in texts.items()]
    index, findings = Index(tmp_path, [tmp_path / 'images/0.jpg']), Findings()
    pairs = pair_files(index, {file: ['0'] for file in files}, findings)
    assert (pairs.image_of, pairs.conflicting) == ({}, {tmp_path / 'images/0.jpg'})
    assert findings.rows()[0][2] == [f'{files[0]} and {files[2]}']
