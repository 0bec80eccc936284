"""Images in the folder of one patient or video stay in one split."""

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

WHOLE = 'folders kept whole in train or val, since each may be of one patient or video'
DIVIDED = (
    'folders whose images are divided between train and val; if each has one patient or video, '
    "write {group} for the folder in a layout's images"
)
SIDES = 48, 64  # height and width
BOX = 4, 5, 30, 25  # left, top, right, bottom


def image(folder: Path, name: str) -> None:
    """Noise, in which no image is like another one."""
    seed = sum(map(ord, name)) + 1000 * len(list(folder.rglob('*.png')))
    save(folder, name, np.random.default_rng(seed).integers(0, 256, (*SIDES, 3), np.uint8))


def mask(folder: Path, name: str) -> None:
    pixels = np.zeros(SIDES, np.uint8)
    pixels[5:25, 4:30] = 1
    save(folder, name, pixels)


# Each of the following functions writes four images in each of `count` folders, which are named
# after `prefix`, with the labels of a task, and reads them.


def masks(folder: Path, prefix: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'images/{prefix}_{p:03}/{i}.png')
            mask(folder, f'masks/{prefix}_{p:03}/{i}.png')
    return read_mask_folder(Tree(folder))


def masks_within(folder: Path, prefix: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{prefix}_{p:03}/images/{i}.png')
            mask(folder, f'{prefix}_{p:03}/masks/{i}.png')
    return read_mask_folder(Tree(folder))


def boxes(folder: Path, prefix: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{prefix}_{p:03}/{i}.png')
            write(folder, f'{prefix}_{p:03}/{i}.xml', voc_xml(f'{i}.png', [('bar', BOX)]))
    return read_annotated_folder(Tree(folder))


def depth(folder: Path, prefix: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{prefix}_{p:03}/rgb/{i}.png')
            save(folder, f'{prefix}_{p:03}/depth/{i}.png', np.full(SIDES, 2000 + i, np.uint16))
    return read_depth_folder(Tree(folder))[0]


def classes(folder: Path, prefix: str, count: int) -> Listing:
    for p in range(count):
        for i in range(4):
            image(folder, f'{"ab"[p % 2]}/{prefix}_{p:03}/{i}.png')
    return read_class_folders(Tree(folder))


def table(folder: Path, prefix: str, count: int) -> Listing:
    rows = ['path,label']
    for p in range(count):
        for i in range(4):
            image(folder, f'images/{prefix}_{p:03}/{i}.png')
            rows.append(f'images/{prefix}_{p:03}/{i}.png,{"ab"[i % 2]}')
    write(folder, 'labels.csv', '\n'.join(rows))
    return read_class_folders(Tree(folder))


def divided(found: Listing, prefix: str) -> list[str]:
    """The folders with this prefix that have images in several splits."""
    splits_of = defaultdict[str, set[str]](set)
    for split, part in found.parts.items():
        for record in part:
            [name] = [name for name in record.path.parts if name.startswith(prefix)]
            splits_of[name].add(split)
    return sorted(name for name, splits in splits_of.items() if len(splits) > 1)


TASKS = masks, masks_within, boxes, depth, classes, table


@pytest.mark.parametrize('write_task', TASKS)
def test_no_patient_is_in_two_splits(tmp_path, write_task):
    listing = write_task(tmp_path, 'patient', 6)
    assert listing.held_out
    assert divided(listing, 'patient_') == []
    assert len(listing.val) in (4, 8)  # one or two of the folders
    assert (WHOLE, 6) in notes_of(listing)


@pytest.mark.parametrize('write_task', [masks, boxes, depth, table])
def test_fewer_folders_are_divided_and_noted(tmp_path, write_task):
    listing = write_task(tmp_path, 'patient', 4)
    assert len(listing.val) == 2
    assert (DIVIDED, 4) in notes_of(listing)


def test_folders_named_by_words_are_divided_and_noted(tmp_path):
    for name in ('bear', 'boat', 'bus', 'camel', 'dog'):
        for i in range(4):
            image(tmp_path, f'images/{name}/{i}.png')
            mask(tmp_path, f'masks/{name}/{i}.png')
    listing = read_mask_folder(Tree(tmp_path))
    assert len(listing.val) == 2
    assert (DIVIDED, 5) in notes_of(listing)


def test_folders_of_classes_of_objects_are_divided(tmp_path):
    for k in range(6):
        for i in range(4):
            image(tmp_path, f'kind_{k}/{i}.png')
            write(tmp_path, f'kind_{k}/{i}.xml', voc_xml(f'{i}.png', [(f'class {k}', BOX)]))
    listing = read_annotated_folder(Tree(tmp_path))
    assert len(listing.classes) == 6
    assert {WHOLE, DIVIDED}.isdisjoint(dict(notes_of(listing)))


def test_folders_of_one_image_are_not_groups(tmp_path):
    for i in range(10):
        image(tmp_path, f'{i}a/images/{i}.png')
        mask(tmp_path, f'{i}a/masks/{i}.png')
    listing = read_mask_folder(Tree(tmp_path))
    assert len(listing.val) == 1
    assert {WHOLE, DIVIDED}.isdisjoint(dict(notes_of(listing)))


def test_outermost_folders_are_the_groups(tmp_path):
    for p in range(5):
        for study in range(2):
            for i in range(3):
                image(tmp_path, f'images/patient_{p}/study_{study}/{i}.png')
                mask(tmp_path, f'masks/patient_{p}/study_{study}/{i}.png')
    listing = read_mask_folder(Tree(tmp_path))
    assert divided(listing, 'patient_') == []
    assert len(listing.val) == 6


@pytest.mark.parametrize('rare', range(6))
def test_only_folder_with_a_class_is_for_training(tmp_path, rare):
    for p in range(6):
        for i in range(3):
            image(tmp_path, f'clip{p}/{i}.png')
            names = ['bar', 'square', 'rare'] if p == rare else ['bar', 'square']
            xml = voc_xml(f'{i}.png', [(name, BOX) for name in names])
            write(tmp_path, f'clip{p}/{i}.xml', xml)
    listing = read_annotated_folder(Tree(tmp_path))
    assert listing.classes == ('bar', 'rare', 'square')
    assert divided(listing, 'clip') == []


@pytest.mark.parametrize('rare', range(6))
def test_only_folder_with_a_class_of_images_is_for_training(tmp_path, rare):
    rows = ['path,label']
    for p in range(6):
        for i in range(4):
            image(tmp_path, f'images/patient_{p}/{i}.png')
            label = 'rare' if (p, i) == (rare, 3) else 'ab'[i % 2]
            rows.append(f'images/patient_{p}/{i}.png,{label}')
    write(tmp_path, 'labels.csv', '\n'.join(rows))
    listing = read_class_folders(Tree(tmp_path))
    assert listing.classes == ('a', 'b', 'rare')
    assert divided(listing, 'patient_') == []


def test_one_folder_is_held_out_if_each_has_a_class_of_its_own(tmp_path):
    for p in range(5):
        for i in range(2):
            image(tmp_path, f'clip{p}/{i}.png')
            names = [f'own {p}', *(f'shared {k}' for k in range(5))]
            xml = voc_xml(f'{i}.png', [(name, BOX) for name in names])
            write(tmp_path, f'clip{p}/{i}.xml', xml)
    listing = read_annotated_folder(Tree(tmp_path))
    assert len(listing.val) == 2
    assert divided(listing, 'clip') == []


def test_a_list_takes_precedence(tmp_path):
    masks(tmp_path, 'patient', 6)
    splits = dict(train=['patient_000', 'patient_001', 'patient_002'], val=['patient_003'])
    write(tmp_path, 'splits.json', json.dumps(splits))
    listing = read_mask_folder(Tree(tmp_path))
    assert not listing.held_out
    assert WHOLE not in dict(notes_of(listing))


def file_name(pattern: str, k: int, i: int) -> str:
    """The name of a frame: the number of its video, its own, and a hash, as of Roboflow."""
    return pattern.format(k=k, i=i, h=f'{100 * k + i:032x}')


def write_frames(folder: Path, pattern: str, groups: int = 6, each: int = 4) -> Listing:
    """Frames of two classes in class folders, whose videos only show in their names."""
    for k in range(groups):
        for i in range(each):
            image(folder, f'{"ab"[(k + i) % 2]}/{file_name(pattern, k, i)}')
    return read_class_folders(Tree(folder))


TOGETHER = (
    'images kept together in train or val, since their names show one video, patient or '
    'augmented image'
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


@pytest.mark.parametrize('pattern', FRAMES)
def test_frames_of_a_video_by_their_names_are_in_one_split(tmp_path, pattern):
    listing = write_frames(tmp_path, pattern)
    video_of = {file_name(pattern, k, i): k for k in range(6) for i in range(4)}
    train, val = (
        {video_of[record.path.name] for record in part} for part in (listing.train, listing.val)
    )
    assert train.isdisjoint(val)
    assert len(val) == 1
    assert dict(notes_of(listing))[TOGETHER] == 6


@pytest.mark.parametrize(
    ('pattern', 'groups'),
    [
        ('vid{k:02}_frame{i:03}.png', 3),
        ('SOB_B_A-14-220{k}AB-40-{i:03}.png', 6),  # BreakHis
        ('v_Archery_g0{k}_c01_{i:04}.png', 6),
    ],
)
def test_possible_videos_are_divided_and_reported(tmp_path, pattern, groups):
    listing = write_frames(tmp_path, pattern, groups)
    assert dict(notes_of(listing))[OF_NAMES] == groups
    assert not any(record.group for record in listing.train)


@pytest.mark.parametrize(
    ('pattern', 'groups', 'each'),
    [
        ('img_{k}{i}.png', 6, 4),
        ('frame_{k}{i}.png', 6, 4),
        ('IMG_20200{k}0{i}.png', 6, 4),
        ('x_{k}{i}.png', 6, 4),
        ('{k}_jpg.rf.{h}.png', 12, 1),  # one image of each name
    ],
)
def test_names_without_a_video_are_not_groups(tmp_path, pattern, groups, each):
    listing = write_frames(tmp_path, pattern, groups, each)
    assert not {TOGETHER, OF_NAMES} & {*dict(notes_of(listing))}
    assert not any(record.group for record in listing.train)


def test_videos_of_one_class_each_are_classes(tmp_path):
    for k, name in enumerate('abcdef'):
        for i in range(4):
            image(tmp_path, f'{name}/vid0{k}_frame{i}.png')
    listing = read_class_folders(Tree(tmp_path))
    assert len(listing.val) == 6
    assert not any(record.group for record in listing.train)
