"""JSON files with images and their classes."""

import json

import pytest
from image_folders import write_flat
from listings import sizes_of
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree

NAMES = [f'{i}.jpg' for i in range(12)]
LABELS = ['cat', 'dog'] * 6
COCO = dict(
    images=[dict(id=i, file_name=name) for i, name in enumerate(NAMES)],
    annotations=[dict(id=i, image_id=i, category_id=7 + i % 2) for i in range(12)],
    categories=[dict(id=7, name='cat'), dict(id=8, name='dog')],
)


@pytest.mark.parametrize(
    'content',
    [
        COCO,  # iNaturalist
        COCO | dict(categories=[dict(id='7', name='cat'), dict(id=8.0, name='dog')]),
        dict(
            metainfo=dict(classes=['cat', 'dog']),
            data_list=[dict(img_path=name, gt_label=i % 2) for i, name in enumerate(NAMES)],
        ),  # MMPretrain
        dict(zip(NAMES, LABELS, strict=True)),
        dict(labels=[*zip(NAMES, LABELS, strict=True)]),  # StyleGAN
        [dict(file=name, label=label) for name, label in zip(NAMES, LABELS, strict=True)],
        dict(
            data=[
                dict(image=f'/up/{name}', choice=label)
                for name, label in zip(NAMES, LABELS, strict=True)
            ]
        ),
    ],
)
def test_common_structures_are_read(tmp_path, content):
    write_flat(tmp_path, 12)
    (tmp_path / 'labels.json').write_text(json.dumps(content))
    listing = read_class_folders(Tree(tmp_path))
    assert (listing.classes, listing.multi_label) == (('cat', 'dog'), False)
    assert sizes_of(listing) == [10, 2, 0]
    for record in listing.train:
        assert record.labels == (LABELS[int(record.path.stem)],)


def test_images_may_have_several_categories(tmp_path):
    write_flat(tmp_path, 12)
    cats = [dict(id=99 + i, image_id=i, category_id=7) for i in range(12)]
    content = COCO | dict(annotations=COCO['annotations'] + cats)
    (tmp_path / 'labels.json').write_text(json.dumps(content))
    listing = read_class_folders(Tree(tmp_path))
    assert listing.multi_label
    assert {len(record.labels) for record in listing.train} == {1, 2}


def test_null_in_a_list_is_no_class(tmp_path):
    write_flat(tmp_path, 12)
    rows = [dict(file=name, label=[label, None]) for name, label in zip(NAMES, LABELS, strict=True)]
    (tmp_path / 'labels.json').write_text(json.dumps(rows))
    listing = read_class_folders(Tree(tmp_path))
    assert (listing.classes, listing.multi_label) == (('cat', 'dog'), False)


def test_several_numbers_of_mmpretrain_get_their_names(tmp_path):
    write_flat(tmp_path, 12)
    images = [dict(img_path=name, gt_label=[0, 1][: 1 + i % 2]) for i, name in enumerate(NAMES)]
    content = dict(metainfo=dict(classes=['dog', 'cat']), data_list=images)
    (tmp_path / 'labels.json').write_text(json.dumps(content))
    listing = read_class_folders(Tree(tmp_path))
    assert (listing.classes, listing.multi_label) == (('cat', 'dog'), True)


def test_keys_may_be_splits(tmp_path):
    write_flat(tmp_path, 12)
    rows = [dict(file=name, label=label) for name, label in zip(NAMES, LABELS, strict=True)]
    content = dict(train=rows[:6], val=rows[6:8], test=rows[8:])
    (tmp_path / 'data.json').write_text(json.dumps(content))
    listing = read_class_folders(Tree(tmp_path))
    assert (listing.classes, sizes_of(listing)) == (('cat', 'dog'), [6, 2, 4])


@pytest.mark.parametrize(
    'content', [{'0': 'cat', '1': 'dog'}, dict(names=['cat', 'dog']), 3, [[1, 2, 3]], {}]
)
def test_other_json_is_not_a_table(tmp_path, content):
    write_flat(tmp_path, 12)
    (tmp_path / 'names.json').write_text(json.dumps(content))
    with rejects(r"are not in folders of classes|one class to train on, 'train'"):
        read_class_folders(Tree(tmp_path))
