"""Images in the folder of one patient or video are all trained on, or all validated."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from foreign_data import save, voc_xml, write
from listings import notes_of

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.depth_folders import read_depth_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_folders import read_mask_folder

WHOLE = 'folders kept whole in train or val, like those of a patient or a video'
DIVIDED = (
    'folders whose images are divided between train and val; if each has one patient or video, '
    "write {group} for the folder in a layout's images"
)
SIDES = 48, 64
BOX = 4, 5, 30, 25


def image(folder: Path, name: str) -> None:
    seed = sum(map(ord, name)) + 1000 * len(list(folder.rglob('*.png')))
    save(folder, name, np.random.default_rng(seed).integers(0, 256, (*SIDES, 3), np.uint8))


def mask(folder: Path, name: str, value: int = 1) -> None:
    pixels = np.zeros(SIDES, np.uint8)
    pixels[5:25, 4:30] = value
    save(folder, name, pixels)


def masks(folder: Path, kind: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'images/{kind}_{p:03}/{i}.png')
            mask(folder, f'masks/{kind}_{p:03}/{i}.png')
    return read_mask_folder(Tree(folder))


def masks_within(folder: Path, kind: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{kind}_{p:03}/images/{i}.png')
            mask(folder, f'{kind}_{p:03}/masks/{i}.png')
    return read_mask_folder(Tree(folder))


def boxes(folder: Path, kind: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{kind}_{p:03}/{i}.png')
            write(folder, f'{kind}_{p:03}/{i}.xml', voc_xml(f'{i}.png', [('bar', BOX)]))
    return read_annotated_folder(Tree(folder))


def depth(folder: Path, kind: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{kind}_{p:03}/rgb/{i}.png')
            save(folder, f'{kind}_{p:03}/depth/{i}.png', np.full(SIDES, 2000 + i, np.uint16))
    return read_depth_folder(Tree(folder))[0]


def classes(folder: Path, kind: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{"ab"[p % 2]}/{kind}_{p:03}/{i}.png')
    return read_class_folders(Tree(folder))


def table(folder: Path, kind: str, count: int) -> Listing:
    rows = ['path,label']
    for p in range(count):
        for i in range(4):
            image(folder, f'images/{kind}_{p:03}/{i}.png')
            rows.append(f'images/{kind}_{p:03}/{i}.png,{"ab"[i % 2]}')
    write(folder, 'labels.csv', '\n'.join(rows))
    return read_class_folders(Tree(folder))


def divided(found: Listing, level: str) -> list[str]:
    """The folders, named after this word, that have images in two splits."""
    splits = defaultdict[str, set[str]](set)
    for split, part in found.parts.items():
        for record in part:
            splits[next(name for name in record.path.parts if name.startswith(level))].add(split)
    return sorted(name for name, own in splits.items() if len(own) > 1)


TASKS = masks, masks_within, boxes, depth, classes, table


@pytest.mark.parametrize('write_task', TASKS)
def test_no_patient_is_in_two_splits(tmp_path, write_task):
    found = write_task(tmp_path, 'patient', 6)
    assert found.held_out
    assert divided(found, 'patient_') == []
    assert len(found.val) in (4, 8)
    assert (WHOLE, 6) in notes_of(found)


@pytest.mark.parametrize('write_task', [masks, boxes, depth, table])
def test_fewer_folders_are_divided_and_noted(tmp_path, write_task):
    found = write_task(tmp_path, 'patient', 4)
    assert len(found.val) == 2
    assert (DIVIDED, 4) in notes_of(found)


def test_folders_named_by_words_are_divided_and_noted(tmp_path):
    for name in ('bear', 'boat', 'bus', 'camel', 'dog'):
        for i in range(4):
            image(tmp_path, f'images/{name}/{i}.png')
            mask(tmp_path, f'masks/{name}/{i}.png')
    found = read_mask_folder(Tree(tmp_path))
    assert len(found.val) == 2
    assert (DIVIDED, 5) in notes_of(found)


def test_folders_of_classes_of_objects_are_divided(tmp_path):
    for k in range(6):
        for i in range(4):
            image(tmp_path, f'kind_{k}/{i}.png')
            write(tmp_path, f'kind_{k}/{i}.xml', voc_xml(f'{i}.png', [(f'class {k}', BOX)]))
    found = read_annotated_folder(Tree(tmp_path))
    assert len(found.classes) == 6
    assert {WHOLE, DIVIDED}.isdisjoint(dict(notes_of(found)))


def test_folders_of_one_image_are_no_groups(tmp_path):
    for i in range(10):
        image(tmp_path, f'{i}a/images/{i}.png')
        mask(tmp_path, f'{i}a/masks/{i}.png')
    found = read_mask_folder(Tree(tmp_path))
    assert len(found.val) == 1
    assert {WHOLE, DIVIDED}.isdisjoint(dict(notes_of(found)))


def test_the_outermost_folders_count(tmp_path):
    for p in range(5):
        for study in range(2):
            for i in range(3):
                image(tmp_path, f'images/patient_{p}/study_{study}/{i}.png')
                mask(tmp_path, f'masks/patient_{p}/study_{study}/{i}.png')
    found = read_mask_folder(Tree(tmp_path))
    assert divided(found, 'patient_') == []
    assert len(found.val) == 6


@pytest.mark.parametrize('rare', range(6))
def test_the_only_folder_with_a_class_is_trained_on(tmp_path, rare):
    for p in range(6):
        for i in range(3):
            image(tmp_path, f'clip{p}/{i}.png')
            names = ['bar', 'square', *(['rare'] if p == rare else [])]
            write(tmp_path, f'clip{p}/{i}.xml', voc_xml(f'{i}.png', [(one, BOX) for one in names]))
    found = read_annotated_folder(Tree(tmp_path))
    assert found.classes == ('bar', 'rare', 'square')
    assert divided(found, 'clip') == []


def test_where_each_folder_has_a_class_of_its_own_one_is_held_out(tmp_path):
    for p in range(5):
        for i in range(2):
            image(tmp_path, f'clip{p}/{i}.png')
            names = [f'own {p}', *(f'shared {k}' for k in range(5))]
            write(tmp_path, f'clip{p}/{i}.xml', voc_xml(f'{i}.png', [(one, BOX) for one in names]))
    found = read_annotated_folder(Tree(tmp_path))
    assert len(found.val) == 2
    assert divided(found, 'clip') == []


def test_a_list_takes_precedence(tmp_path):
    masks(tmp_path, 'patient', 6)
    splits = dict(train=['patient_000', 'patient_001', 'patient_002'], val=['patient_003'])
    write(tmp_path, 'splits.json', json.dumps(splits))
    found = read_mask_folder(Tree(tmp_path))
    assert not found.held_out
    assert WHOLE not in dict(notes_of(found))


def named(folder: Path, name: str, groups: int = 6, each: int = 4) -> Listing:
    """Images of two classes in folders, whose names alone tell their video."""
    for k in range(groups):
        for i in range(each):
            kind = 'ab'[(k + i) % 2]
            image(folder, f'{kind}/{name.format(k=k, i=i, h=f"{100 * k + i:032x}")}')
    return read_class_folders(Tree(folder))


TOGETHER = (
    'images kept together in train or val, as of one video, patient or augmented image by their '
    'names'
)
OF_NAMES = (
    'image names that begin alike, divided between train and val; if they belong to one patient '
    "or video, write {group} for their common part in a layout's images"
)
FRAMES = [
    'vid{k:02}_frame{i:03}.png',
    'clip {k} frame {i}.png',
    'v_Archery_g0{k}_c01_frm{i}.png',
    'holiday{k}_mp4-{i}_jpg.rf.{h}.png',
    'tape{k}.avi_{i:05}.png',
    'IMG_{k}_MOV-{i}_jpg.rf.{h}.png',
    'a{k}.mp4#t={i}.5.png',
    'patient{k}_slice{i}.png',
    'sub-0{k}_ses-{i}.png',
    'street_video_{k}_{i:04}.png',
    '{k}_jpg.rf.{h}.png',
]


@pytest.mark.parametrize('name', FRAMES)
def test_frames_of_a_video_by_their_names_are_in_one_split(tmp_path, name):
    found = named(tmp_path, name)
    of_name = {
        name.format(k=k, i=i, h=f'{100 * k + i:032x}'): k for k in range(6) for i in range(4)
    }
    train, val = ({of_name[one.path.name] for one in part} for part in (found.train, found.val))
    assert train.isdisjoint(val)
    assert len(val) == 1
    assert dict(notes_of(found))[TOGETHER] == 6


@pytest.mark.parametrize(
    ('name', 'groups'),
    [
        ('vid{k:02}_frame{i:03}.png', 3),
        ('SOB_B_A-14-220{k}AB-40-{i:03}.png', 6),  # BreakHis
        ('v_Archery_g0{k}_c01_{i:04}.png', 6),
    ],
)
def test_what_may_be_videos_is_divided_and_named(tmp_path, name, groups):
    found = named(tmp_path, name, groups)
    assert dict(notes_of(found))[OF_NAMES] == groups
    assert not any(one.group for one in found.train)


@pytest.mark.parametrize(
    'name',
    [
        'img_{k}{i}.png',
        'frame_{k}{i}.png',
        'IMG_20200{k}0{i}.png',
        'x_{k}{i}.png',
        '{k}_jpg.rf.{h}.png',
    ],
)
def test_names_that_say_no_video_are_no_groups(tmp_path, name):
    each = 1 if '.rf.' in name else 4
    found = named(tmp_path, name, groups=12 if each == 1 else 6, each=each)
    assert not {TOGETHER, OF_NAMES} & {*dict(notes_of(found))}
    assert not any(one.group for one in found.train)


def test_videos_of_one_class_each_are_classes(tmp_path):
    for k, kind in enumerate('abcdef'):
        for i in range(4):
            image(tmp_path, f'{kind}/vid0{k}_frame{i}.png')
    found = read_class_folders(Tree(tmp_path))
    assert len(found.val) == 6
    assert not any(one.group for one in found.train)
