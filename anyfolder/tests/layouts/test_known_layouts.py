"""Each known layout reads its data set as the download unpacks, with its own splits and names."""

import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from listings import sizes_of
from PIL import Image
from public_boxes import PUBLIC_BOXES
from public_classes import PUBLIC_CLASSES, eurosat, ham10000
from public_maps import PUBLIC_MAPS, bdd100k_masks, cityscapes_train_ids
from public_matlab import PUBLIC_MATLAB
from public_scene import Public, Scene
from rejection import rejects

import anyfolder
from anyfolder.errors import InputError
from anyfolder.layouts.find_layout import read_laid_out
from anyfolder.layouts.known_layouts import known_layouts, layouts_in
from anyfolder.readers.image_tree import Tree

READ = [*PUBLIC_BOXES, *PUBLIC_CLASSES, *PUBLIC_MAPS]
PUBLIC = [*READ, *PUBLIC_MATLAB]


def read(folder, task, **options):
    return read_laid_out(Tree(folder), folder, task, **options)


def check(folder: Path, public: Public) -> None:
    found, depths = read(folder, public.task)
    assert found.classes == tuple(public.classes)
    assert (tuple(sizes_of(found)), found.held_out) == (public.sizes, public.held_out)
    objects = [one for record in found.train for one in record.instances]
    boxes = {(one.name, *one.box) for one in objects}
    assert {(name, *box) for name, box in public.boxes.items()} <= boxes
    assert sum(one.crowd for one in objects) == public.ignored
    records = list(chain(*found.parts.values()))
    for name, label in public.labels.items():
        [labels] = {one.labels for one in records if one.path.as_posix().endswith(name)}
        assert labels == ((label,) if isinstance(label, str) else label)
    stated = ' '.join(chain(*(examples for _, _, examples in found.findings.rows())))
    assert all(words in stated for words in public.notes)
    assert (round(depths.farthest, 2) if depths else 0) == public.farthest


@pytest.mark.parametrize('public', READ, ids=lambda one: f'{one.layout}, {one.task}')
def test_a_public_data_set_is_read_as_it_unpacks(tmp_path, public):
    public.write(Scene(tmp_path))
    check(tmp_path, public)


@pytest.mark.parametrize('public', PUBLIC_MATLAB, ids=lambda one: f'{one.layout}, {one.task}')
def test_what_needs_code_says_how_to_get_readable_labels(tmp_path, public):
    """The code in the sentence is run where it says, and the folder is read then."""
    public.write(Scene(tmp_path))
    with pytest.raises(InputError) as raised:
        read(tmp_path, public.task)
    code = str(raised.value).split('`')[1]
    folder = layouts_in(tmp_path).folder
    subprocess.run([sys.executable, '-c', code], cwd=folder, check=True)
    check(tmp_path, public)


@pytest.mark.parametrize('public', PUBLIC, ids=lambda one: f'{one.layout}, {one.task}')
def test_no_other_layout_fits_as_well(tmp_path, public):
    public.write(Scene(tmp_path))
    assert {layout.title for layout in layouts_in(tmp_path).layouts} == {public.layout}


def test_every_known_layout_has_a_scene():
    assert {one.layout for one in PUBLIC} == {file.stem for file in known_layouts()}


def test_images_of_one_lesion_are_in_one_split(tmp_path):
    ham10000(Scene(tmp_path))
    found, _ = read(tmp_path, 'classification')
    train, val = ({record.group for record in part} for part in (found.train, found.val))
    assert train
    assert val
    assert not train & val


def test_a_known_data_set_that_was_divided_is_read_by_its_splits(tmp_path):
    eurosat(Scene(tmp_path / 'whole'))
    for file in sorted((tmp_path / 'whole/2750').rglob('*.jpg')):
        split = 'val' if file.stem.endswith('0') else 'train'
        place = tmp_path / 'divided' / split / file.parent.name / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(place)
    found = anyfolder.read(tmp_path / 'divided')
    assert found.classes == ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake')
    assert [len(part) for part in found.splits.values()] == [8, 4, 0]


def test_a_data_set_without_images_to_train_on_says_so(tmp_path):
    cityscapes_train_ids(Scene(tmp_path))
    for place in [*tmp_path.glob('**/train')]:
        shutil.rmtree(place)
    with rejects('has images for val and none to train on'):
        anyfolder.read(tmp_path, 'segmentation')


def test_images_that_were_saved_in_another_format_are_read(tmp_path):
    bdd100k_masks(Scene(tmp_path))
    for file in [*tmp_path.rglob('*.jpg')]:
        Image.open(file).save(file.with_suffix('.png'))
        file.unlink()
    found = anyfolder.read(tmp_path, 'segmentation')
    assert found.format == 'BDD100K'
    assert [len(part) for part in found.splits.values()] == [4, 2, 0]


def test_files_beside_the_folder_of_a_layout_are_none_of_it(tmp_path):
    """Their paths are no paths below it, however long they are."""
    eurosat(Scene(tmp_path))
    scene = Scene(tmp_path)
    scene.images(*(f'mine/Forest/{i}.jpg' for i in range(3)))
    found = anyfolder.read(tmp_path, 'classification')
    assert found.classes == ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake')
    assert sum(len(part) for part in found.splits.values()) == 12
