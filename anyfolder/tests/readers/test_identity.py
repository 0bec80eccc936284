"""Which image a label belongs to, and which label file an image has."""

from pathlib import Path

import pytest

from anyfolder.readers.findings import Findings
from anyfolder.readers.identity import Index

DATA = Path('data')


def paths(text: str) -> list[Path]:
    return [DATA / name for name in text.split()]


def pairs_of(images: str, labels: str) -> tuple[dict[str, str], list[str]]:
    """The image of each label file, and the findings."""
    findings = Findings()
    files = {file: [file.stem] for file in paths(labels)}
    found = Index(DATA, paths(images)).pair(files, findings)
    names = {
        file.relative_to(DATA).as_posix(): image.relative_to(DATA).as_posix()
        for file, image in found.image_of.items()
    }
    return names, [what for what, _, _ in findings.rows()]


@pytest.mark.parametrize(
    ('images', 'labels', 'wanted'),
    [
        # in folders of the same structure, next to each other, and in one folder
        ('images/a.jpg', 'labels/a.txt', 'images/a.jpg'),
        ('a.jpg', 'a.txt', 'a.jpg'),
        ('train/images/1.jpg valid/images/1.jpg', 'valid/labels/1.txt', 'valid/images/1.jpg'),
        ('images/train/1.jpg images/val/1.jpg', 'labels/val/1.txt', 'images/val/1.jpg'),
        ('images/train/1.jpg images/val/2.jpg', 'labels/2.txt', 'images/val/2.jpg'),
        ('images/2.jpg', 'labels/train/2.txt', 'images/2.jpg'),
        ('frames_rgb/2.jpg', 'boxes_v2/2.txt', 'frames_rgb/2.jpg'),
        # yolov5#5259: folders in which all frames have the same names
        ('1/f1.png 2/f1.png 3/f1.png', '3/f1.txt', '3/f1.png'),
        ('cam_1/images/0.jpg cam_2/images/0.jpg', 'cam_2/labels/0.txt', 'cam_2/images/0.jpg'),
        ('dogs_images/0.jpg cats_images/0.jpg', 'dogs_labels/0.txt', 'dogs_images/0.jpg'),
        ('2024/cam1/0.jpg 2025/cam1/0.jpg', 'labels/2025/cam1/0.txt', '2025/cam1/0.jpg'),
        ('VOC2007/JPEGImages/1.jpg VOC2012/JPEGImages/1.jpg', 'VOC2012/Annotations/1.xml',
         'VOC2012/JPEGImages/1.jpg'),
        # masks of the same names, and one whose image is missing
        ('JPEGImages/1.jpg SegmentationClass/1.png SegmentationObject/1.png', 'Annotations/1.xml',
         'JPEGImages/1.jpg'),
        ('images/1.jpg masks/1.png masks/2.png', 'labels/2.txt', ''),
        ('masks/1.png', 'labels/1.txt', 'masks/1.png'),
        # missing images, with another image of their name or in their folder
        ('train/images/1.jpg', 'valid/labels/1.txt', ''),
        ('train/1.jpg test/2.jpg', 'test/1.xml', ''),
        ('images/dogs/1.jpg images/not_dogs/4.jpg', 'labels/dogs/4.txt', ''),
        ('images/1.jpg images/more/1.jpg images/more/2.jpg', 'labels/2.txt', ''),
        ('train/1.jpg extra/2.jpg', 'train/labels/2.txt', ''),
        ('cam1/1.jpg cam2/1.jpg cam2/2.jpg', 'labels/cam1/2.txt', ''),
        # but a folder without repeated names is a part of the outer one
        ('images/1.jpg images/more/2.jpg', 'labels/2.txt', 'images/more/2.jpg'),
        # names with the suffix of the image, in another case, and in another Unicode form
        ('images/a.b.jpg', 'labels/a.b.txt', 'images/a.b.jpg'),
        ('images/a.jpg', 'labels/a.jpg.txt', 'images/a.jpg'),
        ('images/A.JPG', 'labels/a.txt', 'images/A.JPG'),
        ('images/cafe\u0301.jpg', 'labels/caf\u00e9.txt', 'images/cafe\u0301.jpg'),
        ('images/A.jpg images/a.jpg', 'labels/a.txt', 'images/a.jpg'),
    ],
)  # fmt: skip
def test_labels_belong_to_the_image_with_the_most_specific_path(images, labels, wanted):
    assert pairs_of(images, labels) == ({labels: wanted} if wanted else {}, [])


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
    pairs = Index(DATA, paths(images)).pair({DATA / label: [Path(label).stem]}, findings)
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
    pairs = index.pair({file: ['0'] for file in files}, findings)
    assert (pairs.image_of, pairs.conflicting) == ({}, {tmp_path / 'images/0.jpg'})
    _, _, examples = findings.rows()[0]
    assert all(str(file) in examples[0] for file in files)
    for file in files:
        file.write_text('the same')
    findings = Findings()
    assert len(index.pair({file: ['0'] for file in files}, findings).image_of) == 1
    what = 'label files left out, since another one of the image is equal'
    assert findings.rows() == [(what, 1, [f'{files[1]}, not {files[0]}'])]


def test_all_equally_near_label_files_are_compared(tmp_path):
    texts = dict(one='same', three='same', two='another')
    files = [write(tmp_path, f'{folder}/0.txt', text) for folder, text in texts.items()]
    index, findings = Index(tmp_path, [tmp_path / 'images/0.jpg']), Findings()
    pairs = index.pair({file: ['0'] for file in files}, findings)
    assert (pairs.image_of, pairs.conflicting) == ({}, {tmp_path / 'images/0.jpg'})
    assert findings.rows()[0][2] == [f'{files[0]} and {files[2]}']


@pytest.mark.parametrize(
    ('name', 'written_in', 'wanted'),
    [
        ('0.jpg', 'train/_annotations.coco.json', 'train/0.jpg'),
        ('../val/0.jpg', 'train/a.json', 'val/0.jpg'),
        ('train/0.jpg', 'annotations/val.json', 'train/0.jpg'),
        ('C:\\mine\\val\\0.jpg', 'annotations/a.json', 'val/0.jpg'),
        ('/home/me/val/0.png', 'annotations/a.json', 'val/0.jpg'),
        ('0.jpg', 'test/a.json', ''),
        ('0.jpg', 'annotations/a.json', 'train/0.jpg val/0.jpg'),
    ],
)
def test_names_are_looked_up_from_the_file_that_has_them(name, written_in, wanted):
    index = Index(DATA, paths('train/0.jpg val/0.jpg'))
    assert index.match(name, DATA / written_in) == paths(wanted)


def test_stated_split_counts_if_images_are_in_split_folders():
    index = Index(DATA, paths('train/0.jpg val/0.jpg'))
    assert index.match('0.jpg', DATA / 'val.csv', 'val') == paths('val/0.jpg')
    assert index.match('1.jpg', DATA / 'val.csv', 'val') == []
    assert Index(DATA, paths('train/0.jpg')).match('0.jpg', DATA / 'val.csv', 'val')


@pytest.mark.parametrize('name', ['https://x.org/a/1.jpg?size=1', 'http://x.org/1.jpg'])
def test_a_url_names_its_file_without_the_query(name):
    image = DATA / 'images/1.jpg'
    assert Index(DATA, [image]).match(name, DATA / 'labels.csv') == [image]
