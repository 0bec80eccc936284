"""Every scene of the tests, written in every format for its task, reads back the same."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from box_scenes import BOX_SCENES
from foreign_data import BOXES, MASKS, cvat_coco, labelme
from image_folders import write_bands, write_coco, write_depth, write_digits, write_panoptic
from public_boxes import PUBLIC_BOXES
from public_classes import PUBLIC_CLASSES
from public_maps import PUBLIC_MAPS
from public_scene import PublicDataSet, Scene

import anyfolder
from anyfolder.writers.placed_images import placed_images
from anyfolder.writers.same_data import difference

SAMPLE = 12  # number of trips in the usual suite; the others are nightly


class Trip(NamedTuple):
    """A scene, the task that it is read for, and the format that it is written in."""

    write: Callable[[Path], object]
    name: str
    task: str
    to: str

    def __str__(self) -> str:
        return f'{self.name}, {self.task} to {self.to}'


def with_polygons(folder: Path) -> None:
    write_coco(folder, polygons=True)


def scene_of(public: PublicDataSet) -> tuple:
    """A public data set as an entry of :data:`SCENES`."""
    return lambda folder: public.write(Scene(folder)), public.layout, public.task


# The writer of a scene, its name, and the task that it is read for.
SCENES = [
    *((write, write.__name__, 'detection') for write in {**BOXES, **BOX_SCENES}),
    *((write, write.__name__, 'instance') for write in (labelme, cvat_coco, with_polygons)),
    *((write, write.__name__, 'segmentation') for write in MASKS),
    *((write, write.__name__, 'classification') for write in (write_digits, write_bands)),
    (write_panoptic, write_panoptic.__name__, 'panoptic'),
    (write_depth, write_depth.__name__, 'depth'),
    *map(scene_of, (*PUBLIC_BOXES, *PUBLIC_CLASSES, *PUBLIC_MAPS)),
]
TRIPS = [
    Trip(write, name, task, to)
    for write, name, task in SCENES
    for to, target in anyfolder.TARGETS.items()
    if task in target.tasks
]
SAMPLED = {*random.Random(0).sample(TRIPS, SAMPLE)}


def state_of(folder: Path) -> list:
    """All paths in a folder, with the times at which they were changed; links are not followed."""
    return sorted((path, path.lstat().st_mtime_ns) for path in folder.rglob('*'))


@pytest.mark.parametrize(
    'trip',
    [
        pytest.param(trip, id=str(trip), marks=() if trip in SAMPLED else pytest.mark.nightly)
        for trip in TRIPS
    ],
)
def test_data_reads_back_the_same_or_its_loss_is_stated(tmp_path, trip):
    trip.write(tmp_path / 'in')
    data = anyfolder.read(tmp_path / 'in', trip.task)
    before = state_of(tmp_path / 'in')
    target = anyfolder.TARGETS[trip.to]
    lost = [
        found
        for _, image in data.images()
        for found in image.objects
        if any(drop.is_dropped(data, found) for drop in target.drops)
    ]
    if reason := target.obstacle(data):
        with pytest.raises(anyfolder.InputError, match='cannot hold this data') as raised:
            anyfolder.convert(data, tmp_path / 'out', trip.to)
        assert reason in str(raised.value)
        return
    if lost:
        with pytest.raises(anyfolder.InputError, match=r'cannot hold \d+ objects'):
            anyfolder.convert(data, tmp_path / 'out', trip.to)
    if len(lost) == sum(len(image.objects) for _, image in data.images()) > 0:
        with pytest.raises(anyfolder.InputError, match='no other object remains to train on'):
            anyfolder.convert(data, tmp_path / 'out', trip.to, lossy=True)
        return
    again = anyfolder.convert(data, tmp_path / 'out', trip.to, lossy=bool(lost))
    assert state_of(tmp_path / 'in') == before
    assert [len(images) for images in again.splits.values()] == [
        len(images) for images in data.splits.values()
    ]
    count = sum(len(image.objects) for _, image in again.images())
    if trip.task != 'segmentation':
        assert count == sum(len(image.objects) for _, image in data.images()) - len(lost)
    if not lost:
        assert difference(data, [*placed_images(data)], again) == ''
