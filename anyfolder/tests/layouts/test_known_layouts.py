"""Each known layout reads its data set as the download unpacks, with its own splits and names."""

from itertools import chain

import pytest
from listings import sizes_of
from public_scenes import PUBLIC, Scene

from anyfolder.layouts.find_layout import read_laid_out
from anyfolder.layouts.known_layouts import known_layouts, layouts_in
from anyfolder.readers.image_tree import Tree


def read(folder, task, **options):
    found, _ = read_laid_out(Tree(folder), folder, task, **options)
    return found


@pytest.mark.parametrize('public', PUBLIC, ids=lambda one: f'{one.layout}, {one.task}')
def test_a_public_data_set_is_read_as_it_unpacks(tmp_path, public):
    public.write(Scene(tmp_path))
    found = read(tmp_path, public.task)
    assert found.form == public.layout.replace('_', ' ')
    assert found.classes == tuple(public.classes)
    assert (tuple(sizes_of(found)), found.held_out) == (public.sizes, public.held_out)
    objects = [one for record in found.train for one in record.instances]
    boxes = {(one.name, *one.box) for one in objects}
    assert {(name, *box) for name, box in public.boxes.items()} <= boxes
    assert sum(one.crowd for one in objects) == public.ignored
    labels = {record.path.name: record.labels for record in chain(*found.parts.values())}
    assert {name: (label,) for name, label in public.labels.items()}.items() <= labels.items()
    stated = ' '.join(chain(*(examples for _, _, examples in found.findings.rows())))
    assert all(words in stated for words in public.notes)


@pytest.mark.parametrize('public', PUBLIC, ids=lambda one: one.layout)
def test_no_other_layout_fits_as_well(tmp_path, public):
    public.write(Scene(tmp_path))
    layouts = known_layouts()[public.layout]
    assert layouts_in(tmp_path).layouts == layouts


def test_every_known_layout_has_a_scene():
    assert {one.layout for one in PUBLIC} == known_layouts().keys()


def test_images_of_one_lesion_are_in_one_split(tmp_path):
    from public_scenes import ham10000

    ham10000(Scene(tmp_path))
    found = read(tmp_path, 'classification')
    train, val = ({record.group for record in part} for part in (found.train, found.val))
    assert train
    assert val
    assert not train & val
