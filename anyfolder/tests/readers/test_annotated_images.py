"""The image of each annotation, in formats with lists of images and with a file per image."""

import json
from pathlib import Path

import pytest
from box_scenes import BOX_SCENES, EXPECTED_BOXES
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


def rename_images(folder: Path, name_of) -> None:
    """Write other names of the images into COCO's file, which ``name_of`` makes of their stems."""
    content = json.loads((folder / TRAIN).read_text())
    for image in content['images']:
        image['file_name'] = name_of(Path(image['file_name']).stem)
    write(folder, TRAIN, json.dumps(content))


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    'name', ['/data/local-files/?d={}.jpg', 'C:\\photos\\{}.JPG', '{}.png', 'train2017/{}.jpg']
)
def test_paths_of_other_machines_and_other_suffixes_match(tmp_path, name):
    """label-studio-converter writes the first, and the third remains after images are converted."""
    write_coco(tmp_path)
    rename_images(tmp_path, name.format)
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


def test_names_may_be_quoted_as_in_urls(tmp_path):
    """Label Studio quotes spaces."""
    write_coco(tmp_path)
    for path in tmp_path.rglob('*.jpg'):
        path.rename(path.with_name(f'a {path.name}'))
    rename_images(tmp_path, 'a%20{}.jpg'.format)
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


def test_names_match_in_any_unicode_form(tmp_path):
    for i, (image, _) in enumerate(scenes(10)):
        save(tmp_path, f'images/cafe\u0301 {i}.jpg', image)  # as macOS writes it
        save(tmp_path, f'images/._cafe\u0301 {i}.jpg', image)
    (tmp_path / 'images/Thumbs.db').touch()
    names = [f'C:\\photos\\caf\u00e9 {i}.jpg' for i in range(10)]
    write(tmp_path, 'result.json', coco_json(names, [boxes for _, boxes in scenes(10)]))
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    assert not listing.findings.rows()


def test_missing_images_raise(tmp_path):
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
    listing = read(tmp_path)
    assert [record.path.parent.name for record in listing.val] == ['val'] * 3


def as_createml(names, boxes):
    """The images and labels of ``coco_json`` as a list of images, with other boxes."""
    rows = []
    for name, labeled in zip(names, boxes, strict=True):
        annotations = [dict(label=label, bbox=[1, 2, 30, 20]) for label, _ in labeled]
        rows.append(dict(image=name, annotations=annotations))
    return json.dumps(rows)


@pytest.mark.parametrize('format', [coco_json, as_createml])
def test_image_folders_give_the_splits_of_a_file_of_all_images(tmp_path, format):
    names = [f'{"train" if i < 6 else "val" if i < 8 else "test"}/{i}.jpg' for i in range(10)]
    for name, (image, _) in zip(names, scenes(10), strict=True):
        save(tmp_path, f'images/{name}', image)
    write(tmp_path, 'all.json', format(names, [boxes for _, boxes in scenes(10)]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 2]


@pytest.mark.parametrize(
    'write_scene', [scene for scene, (_, has_splits) in BOX_SCENES.items() if has_splits]
)
def test_labels_of_a_missing_image_are_not_taken_for_another_split(tmp_path, write_scene):
    """Another split has an image of that name: ultralytics#20440."""
    write_scene(tmp_path)
    [missing] = tmp_path.rglob('6*.jpg')
    other = next(tmp_path.rglob('0*.jpg')).with_name(missing.name)
    missing.rename(other)
    listing = read(tmp_path, skip_invalid=True)
    records = [record for part in listing.parts.values() for record in part]
    assert not any(record.instances for record in records if record.path == other)
    assert sum(boxes_of(listing).values()) == 18
    assert any('6' in examples[0] for _, _, examples in listing.findings.rows())


def test_annotations_without_an_image_raise(tmp_path):
    (write_voc(tmp_path) / 'JPEGImages/001.jpg').unlink()
    with rejects(r'annotations have no image of their name \(1, the first is .*001\.xml'):
        read(tmp_path)


def test_name_of_an_annotation_file_precedes_the_name_in_it(tmp_path):
    """A renamed file still contains its old name, which can be that of another image now."""
    write_voc(tmp_path)
    replace(tmp_path / 'Annotations/001.xml', '<size>', '<filename>002.jpg</filename><size>')
    listing = read(tmp_path)
    assert sorted(record.path.stem for record in listing.train) == ['000', '001', '002', '003']
    what = 'annotations that name another image, taken for the image of their own name'
    assert (what, 1) in notes_of(listing)


def test_name_in_a_file_counts_if_no_image_has_the_name_of_the_file(tmp_path):
    write_voc(tmp_path)
    for path in (tmp_path / 'Annotations').iterdir():
        replace(path, '<size>', f'<filename>a\\{path.stem}.jpg</filename><size>')
        path.rename(path.with_name(f'label {path.name}'))
    for path in (tmp_path / 'ImageSets/Main').iterdir():
        path.write_text(''.join(f'label {line}\n' for line in path.read_text().split()))
    assert len(read(tmp_path).train) == 4


def test_labelme_files_with_the_name_of_another_image_raise(tmp_path):
    """X-AnyLabeling#1206, labelme#389."""
    labelme(tmp_path)
    replace(tmp_path / '3.json', '..\\\\raw\\\\3.jpg', '4.jpg')
    with rejects(r"have the name of one image.*3\.json with '4\.jpg'"):
        read(tmp_path)
    for i in range(10):  # no image has a name that is in a file
        path = tmp_path / f'{i}.json'
        path.write_text(path.read_text().replace('3.jpg', 'IMG.jpg').replace('4.jpg', 'IMG.jpg'))
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


@pytest.mark.parametrize(
    ('write_scene', 'name', 'old', 'new', 'words'),
    [
        (
            labelme,
            '1.json',
            '"points"',
            '"point"',
            r"1\.json' has a shape that is invalid for the format LabelMe \(KeyError",
        ),
        (
            write_voc,
            'Annotations/001.xml',
            'xmin',
            'left',
            r"001\.xml' has an object that is invalid for the format Pascal VOC \(",
        ),
        (
            write_coco,
            TRAIN,
            '"categories"',
            '"classes"',
            "has an image or a box that is invalid for the format COCO .*'categories'",
        ),
    ],
)
def test_incomplete_files_raise(tmp_path, write_scene, name, old, new, words):
    write_scene(tmp_path)
    replace(tmp_path / name, old, new)
    with rejects(words):
        read(tmp_path)
