"""Public data sets as their downloads unpack, with a few small images each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 40, 30
Sizes = tuple[int, int, int]  # the images to train on, to validate and to test


class Scene:
    """Writes files below a folder.

    Attributes:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._random = folder, np.random.default_rng(0)

    def path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def images(self, *names: str, size: tuple[int, int] = SIZE) -> None:
        """Noise, so that no image is a copy of another."""
        for name in names:
            pixels = self._random.integers(0, 255, (size[1], size[0], 3), np.uint8)
            Image.fromarray(pixels).save(self.path(name))

    def array(self, name: str, values: np.ndarray) -> None:
        """A mask or a map of depth."""
        if name.endswith('.npy'):
            np.save(self.path(name), values)
        else:
            Image.fromarray(values).save(self.path(name))

    def text(self, name: str, *lines: str) -> None:
        self.path(name).write_text(''.join(f'{line}\n' for line in lines))


@dataclass
class Public:
    """A scene of a public data set, and what is right.

    Attributes:
        layout: the known layout that it has.
        write: writes the scene.
        task: that it is read for.
        classes: in the order of their numbers.
        sizes: the images of each split.
        held_out: whether those to validate were held out.
        boxes: of objects in the images to train on, with their class, among others.
        labels: the classes of images to train on, by the names of their files, among others.
        ignored: the number of objects that are neither trained on nor counted.
        notes: words of what is said of it.
    """

    layout: str
    write: Callable[[Scene], None]
    task: str
    classes: Iterable[str]
    sizes: Sizes
    held_out: bool = False
    boxes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    ignored: int = 0
    notes: tuple[str, ...] = ()


def visdrone(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2), ('test-dev', 2), ('test-challenge', 1)):
        for i in range(count):
            place = f'VisDrone2019-DET-{split}'
            scene.images(f'{place}/images/{split}_{i}.jpg')
            rows = '5,6,20,10,1,4,0,0', '1,2,10,9,0,0,0,0,', '20,15,8,9,1,1,0,1', '3,3,9,8,0,11,0,0'
            if split != 'test-challenge':
                scene.text(f'{place}/annotations/{split}_{i}.txt', *rows)


def kitti(scene: Scene) -> None:
    for i in range(6):
        scene.images(f'training/image_2/{i:06}.png')
        scene.text(
            f'training/label_2/{i:06}.txt',
            'Car 0.00 0 -1.58 5.00 6.00 25.00 16.00 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59',
            'Pedestrian 0.00 0 -0.20 30.50 5.00 36.50 25.00 1.89 0.48 1.20 1.84 1.47 8.41 0.01',
            'DontCare -1 -1 -10 1.00 20.00 9.00 29.00 -1 -1 -1 -1000 -1000 -1000 -10',
        )
    scene.images('testing/image_2/000000.png', 'testing/image_2/000001.png')


BIRDS = '001.Black_footed_Albatross', '002.Laysan_Albatross'


def cub(scene: Scene) -> None:
    scene.text('attributes.txt', '1 has_bill_shape::curved')
    rows = [(n, bird, f'{bird}/{bird[4:]}_{n:04}.jpg') for n, bird in enumerate(BIRDS * 5, 1)]
    place = 'CUB_200_2011'
    scene.images(*(f'{place}/images/{name}' for _, _, name in rows))
    scene.text(f'{place}/images.txt', *(f'{n} {name}' for n, _, name in rows))
    scene.text(f'{place}/classes.txt', *(f'{n} {bird}' for n, bird in enumerate(BIRDS, 1)))
    labels = (f'{n} {BIRDS.index(bird) + 1}' for n, bird, _ in rows)
    scene.text(f'{place}/image_class_labels.txt', *labels)
    scene.text(f'{place}/train_test_split.txt', *(f'{n} {int(n < 8)}' for n, _, _ in rows))
    scene.text(f'{place}/bounding_boxes.txt', *(f'{n} {n}.0 5.0 20.0 15.0' for n, _, _ in rows))
    scene.text(f'{place}/parts/parts.txt', '1 back')


def ham10000(scene: Scene) -> None:
    rows = []
    for i in range(24):
        name = f'ISIC_{24000 + i:07}'
        scene.images(f'HAM10000_images_part_{1 + i % 2}/{name}.jpg')
        kind = ('nv', 'mel')[i // 2 % 2]
        rows.append(f'HAM_{i // 2:07},{name},{kind},histo,80.0,male,scalp')
    header = 'lesion_id,image_id,dx,dx_type,age,sex,localization'
    scene.text('HAM10000_metadata.csv', header, *rows)
    scene.text('hmnist_28_28_L.csv', 'pixel0000,label', '1,2')


def dtd(scene: Scene) -> None:
    kinds = 'banded', 'dotted', 'lined'
    names = [f'{kind}/{kind}_{i:04}.jpg' for kind in kinds for i in range(6)]
    scene.images(*(f'dtd/images/{name}' for name in names))
    for number in range(1, 11):
        for place, split in enumerate(('train', 'val', 'test')):
            listed = (name for i, name in enumerate(names) if (i + number) % 3 == place)
            scene.text(f'dtd/labels/{split}{number}.txt', *listed)
    joint = (f'{name} {name.partition("/")[0]} ' for name in names)
    scene.text('dtd/labels/labels_joint_anno.txt', *joint)


def wider_face(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2), ('test', 1)):
        lines = []
        for i in range(count):
            name = f'0--Parade/{i}_Parade_{split}_{i}.jpg'
            scene.images(f'WIDER_{split}/images/{name}')
            if i == 1:
                lines += [name, '0', '0 0 0 0 0 0 0 0 0 0 ']
            else:
                lines += [name, '2', '5 6 20 10 0 0 0 0 0 0 ', '1 2 8 9 2 0 0 1 2 0 ']
        if split != 'test':
            scene.text(f'wider_face_split/wider_face_{split}_bbx_gt.txt', *lines)
    scene.text('wider_face_split/wider_face_test_filelist.txt', '0--Parade/0_Parade_test_0.jpg')


DRONE_CLASSES = 'pedestrian', 'car'
PUBLIC = [
    Public(
        'VisDrone-DET', visdrone, 'detection', DRONE_CLASSES, (4, 2, 2),
        boxes=dict(car=(5, 6, 20, 10), pedestrian=(20, 15, 8, 9)), ignored=8,
        notes=('test-challenge',),
    ),
    Public(
        'KITTI', kitti, 'detection', ('Car', 'Pedestrian'), (5, 1, 0), held_out=True,
        boxes=dict(Car=(5, 6, 20, 10), Pedestrian=(30.5, 5, 6, 20)), ignored=5, notes=('testing',),
    ),
    Public('CUB-200-2011', cub, 'classification', BIRDS, (5, 2, 3), held_out=True),
    Public(
        'CUB-200-2011', cub, 'detection', BIRDS, (6, 1, 3), held_out=True,
        boxes={BIRDS[0]: (1, 5, 20, 15), BIRDS[1]: (2, 5, 20, 15)},
    ),
    Public(
        'HAM10000', ham10000, 'classification', ('melanoma', 'melanocytic nevus'), (20, 4, 0),
        held_out=True, labels={'ISIC_0024000.jpg': 'melanocytic nevus'}, notes=('lesion',),
    ),
    Public('DTD', dtd, 'classification', ('banded', 'dotted', 'lined'), (6, 6, 6),
           notes=('train2.txt',)),
    Public(
        'WIDER_FACE', wider_face, 'detection', ('face',), (4, 2, 0),
        boxes=dict(face=(5, 6, 20, 10)), ignored=3, notes=('test images',),
    ),
]  # fmt: skip
