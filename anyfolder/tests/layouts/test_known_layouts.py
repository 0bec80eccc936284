"""Each known layout reads its data set as downloaded, with its splits and class names."""

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
from public_scene import PublicDataSet, Scene
from rejection import rejects

import anyfolder
from anyfolder.errors import InputError
from anyfolder.layouts.find_layout import read_laid_out
from anyfolder.layouts.known_layouts import known_layouts, layouts_of_folder
from anyfolder.readers.image_tree import Tree

READ = [*PUBLIC_BOXES, *PUBLIC_CLASSES, *PUBLIC_MAPS]
PUBLIC = [*READ, *PUBLIC_MATLAB]


def read(folder, task, **options):
    return read_laid_out(Tree(folder), folder, task, **options)


def check(folder: Path, public: PublicDataSet) -> None:
    listing, depths = read(folder, public.task)
    assert listing.classes == tuple(public.classes)
    assert (tuple(sizes_of(listing)), listing.held_out) == (public.sizes, public.held_out)
    objects = [instance for record in listing.train for instance in record.instances]
    boxes = {(instance.name, *instance.box) for instance in objects}
    assert {(name, *box) for name, box in public.boxes.items()} <= boxes
    assert sum(instance.crowd for instance in objects) == public.ignored
    records = list(chain(*listing.parts.values()))
    for name, label in public.labels.items():
        [labels] = {record.labels for record in records if record.path.as_posix().endswith(name)}
        assert labels == ((label,) if isinstance(label, str) else label)
    examples = ' '.join(chain(*(examples for _, _, examples in listing.findings.rows())))
    assert all(words in examples for words in public.notes)
    assert (round(depths.farthest, 2) if depths else 0) == public.farthest


@pytest.mark.parametrize('public', READ, ids=lambda public: f'{public.layout}, {public.task}')
def test_public_data_sets_are_read_as_downloaded(tmp_path, public):
    public.write(Scene(tmp_path))
    check(tmp_path, public)


@pytest.mark.parametrize(
    'public', PUBLIC_MATLAB, ids=lambda public: f'{public.layout}, {public.task}'
)
def test_error_on_matlab_files_has_code_that_converts_them(tmp_path, public):
    """After the code has run in the folder that the error names, the data set is read."""
    public.write(Scene(tmp_path))
    with pytest.raises(InputError) as raised:
        read(tmp_path, public.task)
    code = str(raised.value).split('`')[1]
    folder = layouts_of_folder(tmp_path).folder
    subprocess.run([sys.executable, '-c', code], cwd=folder, check=True)
    check(tmp_path, public)


@pytest.mark.parametrize('public', PUBLIC, ids=lambda public: f'{public.layout}, {public.task}')
def test_no_other_layout_fits_as_well(tmp_path, public):
    public.write(Scene(tmp_path))
    assert {layout.title for layout in layouts_of_folder(tmp_path).layouts} == {public.layout}


def test_every_known_layout_has_a_scene():
    assert {public.layout for public in PUBLIC} == {file.stem for file in known_layouts()}


def test_images_of_one_lesion_are_in_one_split(tmp_path):
    ham10000(Scene(tmp_path))
    listing, _ = read(tmp_path, 'classification')
    train, val = ({record.group for record in part} for part in (listing.train, listing.val))
    assert train
    assert val
    assert not train & val


def test_known_data_set_in_split_folders_keeps_these_splits(tmp_path):
    eurosat(Scene(tmp_path / 'whole'))
    for file in sorted((tmp_path / 'whole/2750').rglob('*.jpg')):
        split = 'val' if file.stem.endswith('0') else 'train'
        target = tmp_path / 'divided' / split / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    data = anyfolder.read(tmp_path / 'divided')
    assert data.classes == ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake')
    assert [len(part) for part in data.splits.values()] == [8, 4, 0]


def test_data_set_without_training_images_raises(tmp_path):
    cityscapes_train_ids(Scene(tmp_path))
    for folder in [*tmp_path.glob('**/train')]:
        shutil.rmtree(folder)
    with rejects('has images for val and none to train on'):
        anyfolder.read(tmp_path, 'segmentation')


def test_images_converted_to_another_format_are_read(tmp_path):
    bdd100k_masks(Scene(tmp_path))
    for file in [*tmp_path.rglob('*.jpg')]:
        Image.open(file).save(file.with_suffix('.png'))
        file.unlink()
    data = anyfolder.read(tmp_path, 'segmentation')
    assert data.format == 'BDD100K'
    assert [len(part) for part in data.splits.values()] == [4, 2, 0]


def test_files_outside_the_folder_of_a_layout_are_left_out(tmp_path):
    """``mine/Forest/0.jpg`` is not taken for an image in a class folder of ``2750``."""
    scene = Scene(tmp_path)
    eurosat(scene)
    scene.images(*(f'mine/Forest/{i}.jpg' for i in range(3)))
    data = anyfolder.read(tmp_path, 'classification')
    assert data.classes == ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake')
    assert sum(len(part) for part in data.splits.values()) == 12


def test_folder_with_a_link_to_itself_has_no_layout(tmp_path):
    (tmp_path / 'again').symlink_to(tmp_path)
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    assert layouts_of_folder(tmp_path) is None
