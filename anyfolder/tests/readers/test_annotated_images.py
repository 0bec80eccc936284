"""Which image an annotation is of, in formats that list images and in those with a file of each."""

import json
from pathlib import Path

import pytest
from box_scenes import BOX_SCENES, WANTED
from foreign_data import coco_json, labelme, save, write
from image_folders import scenes, write_coco, write_voc
from listings import boxes_of, notes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing

TRAIN = 'annotations/instances_train2017.json'


def read(folder: Path, **options) -> Listing:
    return read_annotated_folder(Tree(folder), **options)


def rename_images(folder: Path, name) -> None:
    """Write other names of the images into the file of COCO."""
    content = json.loads((folder / TRAIN).read_text())
    for image in content['images']:
        image['file_name'] = name(Path(image['file_name']).stem)
    write(folder, TRAIN, json.dumps(content))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    'name', ['/data/local-files/?d={}.jpg', 'C:\\photos\\{}.JPG', '{}.png', 'train2017/{}.jpg']
)
def test_names_of_other_machines_and_suffixes(tmp_path, name):
    """label-studio-converter writes the first one, and conversions leave the third one."""
    write_coco(tmp_path)
    rename_images(tmp_path, name.format)
    assert boxes_of(read(tmp_path)) == WANTED


def test_names_may_be_those_of_urls(tmp_path):
    """As Label Studio writes those with spaces."""
    write_coco(tmp_path)
    for path in tmp_path.rglob('*.jpg'):
        path.rename(path.with_name(f'a {path.name}'))
    rename_images(tmp_path, 'a%20{}.jpg'.format)
    assert boxes_of(read(tmp_path)) == WANTED


def test_names_are_compared_as_people_read_them(tmp_path):
    for i, (image, _) in enumerate(scenes(10)):
        save(tmp_path, f'images/cafe\u0301 {i}.jpg', image)  # as macOS writes it
        save(tmp_path, f'images/._cafe\u0301 {i}.jpg', image)
    (tmp_path / 'images/Thumbs.db').touch()
    names = [f'C:\\photos\\caf\u00e9 {i}.jpg' for i in range(10)]
    write(tmp_path, 'result.json', coco_json(names, [boxes for _, boxes in scenes(10)]))
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert not found.findings.rows()


def test_an_image_that_is_not_there_is_named(tmp_path):
    write_coco(tmp_path)
    rename_images(tmp_path, lambda stem: f'{"x" if stem == "0" else stem}.jpg')
    with rejects(r"images of .* are missing, or are in another split \(1, the first is 'x.jpg'"):
        read(tmp_path)


def test_images_of_one_name_are_told_apart_by_their_split(tmp_path):
    for split, count in (('train', 6), ('val', 3)):
        for i, (image, _) in enumerate(scenes(count)):
            save(tmp_path, f'images/{split}/{i}.jpg', image)
        names = [f'{i}.jpg' for i in range(count)]
        text = coco_json(names, [boxes for _, boxes in scenes(count)])
        write(tmp_path, f'annotations/{split}.json', text)
    found = read(tmp_path)
    assert [record.path.parent.name for record in found.val] == ['val'] * 3


def as_createml(names, boxes):
    """The same as ``coco_json`` in another format."""
    rows = [
        dict(image=name, annotations=[dict(label=kind, bbox=[1, 2, 30, 20]) for kind, _ in own])
        for name, own in zip(names, boxes, strict=True)
    ]
    return json.dumps(rows)


@pytest.mark.parametrize('format', [coco_json, as_createml])
def test_folders_of_images_say_the_split_where_the_file_of_all_does_not(tmp_path, format):
    names = [f'{"train" if i < 6 else "val" if i < 8 else "test"}/{i}.jpg' for i in range(10)]
    for name, (image, _) in zip(names, scenes(10), strict=True):
        save(tmp_path, f'images/{name}', image)
    write(tmp_path, 'all.json', format(names, [boxes for _, boxes in scenes(10)]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 2]


@pytest.mark.parametrize('write_scene', [scene for scene, row in BOX_SCENES.items() if row[1]])
def test_no_image_has_the_label_of_one_that_is_gone(tmp_path, write_scene):
    """ultralytics#20440: another split has an image of this name."""
    write_scene(tmp_path)
    [gone] = tmp_path.rglob('6*.jpg')
    other = next(tmp_path.rglob('0*.jpg')).with_name(gone.name)
    gone.rename(other)
    found = read(tmp_path, skip_invalid=True)
    assert not any(
        record.instances for part in found.parts.values() for record in part if record.path == other
    )
    assert sum(boxes_of(found).values()) == 18
    assert any('6' in row[2][0] for row in found.findings.rows())


def test_an_annotation_without_an_image_is_named(tmp_path):
    (write_voc(tmp_path) / 'JPEGImages/001.jpg').unlink()
    with rejects(r'annotations have no image of their name \(1, the first is .*001\.xml'):
        read(tmp_path)


def test_the_name_of_the_file_counts_before_the_name_in_it(tmp_path):
    """Renamed files keep the old name in them, which may be that of another image now."""
    write_voc(tmp_path)
    replace(tmp_path / 'Annotations/001.xml', '<size>', '<filename>002.jpg</filename><size>')
    found = read(tmp_path)
    assert sorted(record.path.stem for record in found.train) == ['000', '001', '002', '003']
    what = 'annotations that name another image, taken for the image of their own name'
    assert (what, 1) in notes_of(found)


def test_the_name_in_a_file_counts_where_there_is_none_of_its_own(tmp_path):
    write_voc(tmp_path)
    for path in (tmp_path / 'Annotations').iterdir():
        replace(path, '<size>', f'<filename>a\\{path.stem}.jpg</filename><size>')
        path.rename(path.with_name(f'label {path.name}'))
    for path in (tmp_path / 'ImageSets/Main').iterdir():
        path.write_text(''.join(f'label {line}\n' for line in path.read_text().split()))
    assert len(read(tmp_path).train) == 4


def test_two_names_in_labelme_are_a_question(tmp_path):
    """X-AnyLabeling#1206, labelme#389."""
    labelme(tmp_path)
    replace(tmp_path / '3.json', '..\\\\raw\\\\3.jpg', '4.jpg')
    with rejects(r"have the name of one image.*3\.json with '4\.jpg'"):
        read(tmp_path)
    for i in range(10):  # all were renamed, and no old name is there
        path = tmp_path / f'{i}.json'
        path.write_text(path.read_text().replace('3.jpg', 'IMG.jpg').replace('4.jpg', 'IMG.jpg'))
    assert boxes_of(read(tmp_path)) == WANTED


@pytest.mark.parametrize(
    ('write_scene', 'name', 'old', 'new', 'words'),
    [
        (
            labelme,
            '1.json',
            '"points"',
            '"point"',
            r"1\.json' has a shape that is incomplete for the format LabelMe \(KeyError",
        ),
        (
            write_voc,
            'Annotations/001.xml',
            'xmin',
            'left',
            r"001\.xml' has an object that is incomplete for the format Pascal VOC \(",
        ),
        (
            write_coco,
            TRAIN,
            '"categories"',
            '"classes"',
            "has an image or a box that is incomplete for the format COCO .*'categories'",
        ),
    ],
)
def test_a_file_that_is_not_complete_is_one_sentence(tmp_path, write_scene, name, old, new, words):
    write_scene(tmp_path)
    replace(tmp_path / name, old, new)
    with rejects(words):
        read(tmp_path)
