"""Write small folders of labeled images, for the tests of both packages."""

import json
from pathlib import Path

import cv2
import numpy as np
from sklearn.datasets import load_digits


def write_digits(folder: Path, per_class: int = 4, classes: int = 3, size: int = 8) -> Path:
    """The first images of each of scikit-learn's digits as ``folder/digit <i>/<n>.png``."""
    digits = load_digits()
    for label in range(classes):
        class_folder = folder / f'digit {label}'
        class_folder.mkdir(parents=True)
        for i, image in enumerate(digits.images[digits.target == label][:per_class]):
            pixels = cv2.resize(
                (image * 255 / 16).astype(np.uint8), (size, size), interpolation=cv2.INTER_NEAREST
            )
            cv2.imwrite(str(class_folder / f'{i:03d}.png'), pixels)
    return folder


def write_flat(folder: Path, count: int, subfolder: str = 'train') -> Path:
    """Images ``folder/<subfolder>/<n>.jpg`` of uniform gray ``10 * n``, without classes."""
    (folder / subfolder).mkdir(parents=True)
    for i in range(count):
        cv2.imwrite(str(folder / subfolder / f'{i}.jpg'), np.full((8, 8, 3), 10 * i, np.uint8))
    return folder


def scenes(count: int) -> list[tuple[np.ndarray, list[tuple[str, tuple[int, int, int, int]]]]]:
    """Pictures of 64 x 48 pixels with a bright square and a dark bar, and their boxes (left, top,
    right, bottom).
    """
    generator = np.random.default_rng(0)
    pictures = []
    for _ in range(count):
        image = np.full((48, 64, 3), 128, dtype=np.uint8)
        x, y = generator.integers(0, 20, 2).tolist()
        image[y : y + 16, x : x + 16], image[40:44, 30:60] = 255, 0
        pictures.append((image, [('square', (x, y, x + 16, y + 16)), ('bar', (30, 40, 60, 44))]))
    return pictures


def write_voc(folder: Path, train: int = 4, val: int = 2) -> Path:
    """:func:`scenes` in the folders of Pascal VOC."""
    for name in ('Annotations', 'JPEGImages', 'ImageSets/Main'):
        (folder / name).mkdir(parents=True)
    for i, (image, boxes) in enumerate(scenes(train + val)):
        cv2.imwrite(str(folder / f'JPEGImages/{i:03d}.jpg'), image)
        objects = ''.join(
            f'<object><name>{name}</name><bndbox><xmin>{box[0] + 1}</xmin><ymin>{box[1] + 1}</ymin>'
            f'<xmax>{box[2] + 1}</xmax><ymax>{box[3] + 1}</ymax></bndbox></object>'
            for name, box in boxes
        )
        (folder / f'Annotations/{i:03d}.xml').write_text(
            f'<annotation><size><width>64</width><height>48</height></size>{objects}</annotation>'
        )
    names = [f'{i:03d}\n' for i in range(train + val)]
    (folder / 'ImageSets/Main/train.txt').write_text(''.join(names[:train]) + '\n')
    (folder / 'ImageSets/Main/val.txt').write_text(''.join(names[train:]))
    return folder


def write_coco(
    folder: Path, count: int = 10, name: str = 'instances_train2017', polygons: bool = False
) -> Path:
    """:func:`scenes` in the folders of COCO, with an unused category, and optional polygons."""
    image_folder = folder / name.rpartition('_')[2]
    image_folder.mkdir(parents=True)
    (folder / 'annotations').mkdir(exist_ok=True)
    content = dict(
        images=[],
        annotations=[],
        categories=[dict(id=3, name='square'), dict(id=1, name='nothing'), dict(id=7, name='bar')],
    )
    ids = {category['name']: category['id'] for category in content['categories']}
    for i, (image, boxes) in enumerate(scenes(count)):
        cv2.imwrite(str(image_folder / f'{i}.jpg'), image)
        content['images'].append(dict(id=i, file_name=f'{i}.jpg', width=64, height=48))
        for class_name, (left, top, right, bottom) in boxes:
            annotation = dict(
                id=len(content['annotations']) + 1,
                image_id=i,
                category_id=ids[class_name],
                iscrowd=0,
                bbox=[left, top, right - left, bottom - top],
                area=(right - left) * (bottom - top),
            )
            if polygons:
                outline = [left, top, right, top, right, bottom, left, bottom]
                annotation['segmentation'] = [outline]
            content['annotations'].append(annotation)
    (folder / f'annotations/{name}.json').write_text(json.dumps(content))
    return folder


def write_panoptic(folder: Path) -> Path:
    """:func:`scenes` in the folders of COCO's panoptic data, with a floor that is stuff below four
    unlabeled rows.
    """
    annotations = folder / 'annotations'
    categories = [
        dict(id=5, name='floor', isthing=0),
        dict(id=9, name='square', isthing=1),
        dict(id=3, name='bar', isthing=1),
    ]
    ids = {category['name']: category['id'] for category in categories}
    pictures = scenes(6)
    for split, chosen in (('train', pictures[:4]), ('val', pictures[4:])):
        (annotations / f'panoptic_{split}').mkdir(parents=True)
        (folder / split).mkdir()
        content = dict(images=[], annotations=[], categories=categories)
        for i, (image, boxes) in enumerate(chosen):
            # numbers of segments that need two and three bytes of a color
            numbers = np.full(image.shape[:2], 70_000, np.int32)
            numbers[:4] = 0
            segments = [dict(id=70_000, category_id=ids['floor'], iscrowd=0)]
            for number, (class_name, (left, top, right, bottom)) in enumerate(boxes, 1):
                numbers[top:bottom, left:right] = 300 * number
                segments.append(dict(id=300 * number, category_id=ids[class_name], iscrowd=0))
            cv2.imwrite(str(folder / split / f'{i}.jpg'), image)
            colors = np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], -1)  # BGR
            cv2.imwrite(str(annotations / f'panoptic_{split}/{i}.png'), colors.astype(np.uint8))
            content['images'].append(dict(id=i, file_name=f'{i}.jpg', width=64, height=48))
            content['annotations'].append(
                dict(image_id=i, file_name=f'{i}.png', segments_info=segments)
            )
        (annotations / f'panoptic_{split}.json').write_text(json.dumps(content))
    return folder


def write_masks(folder: Path, count: int = 6) -> Path:
    """:func:`scenes` as ``images/<n>.png`` and ``masks/<n>.png``."""
    for i, (image, boxes) in enumerate(scenes(count)):
        mask = np.zeros(image.shape[:2], dtype=np.uint8)
        for label, (_, (left, top, right, bottom)) in enumerate(boxes, 1):
            mask[top:bottom, left:right] = label
        for name, pixels in (('images', image), ('masks', mask)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / name / f'{i}.png'), pixels)
    return folder


def write_depth(folder: Path, count: int = 6) -> Path:
    """Noise, with depth maps in millimeters that rise to 3.15 m below four unknown rows."""
    random = np.random.default_rng(0)
    for subfolder in ('images', 'depth'):
        (folder / subfolder).mkdir(parents=True)
    for i in range(count):
        pixels = random.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / f'images/{i}.jpg'), pixels)
        depth = np.linspace(1000, 3150, 48 * 64).reshape(48, 64).astype(np.uint16)
        depth[:4] = 0
        cv2.imwrite(str(folder / f'depth/{i}.png'), depth)
    return folder


def write_bands(folder: Path, suffix: str = '.tif') -> Path:
    """Noise of six bands as ``folder/{dry,wet}/<n>``; the last band is brighter if wet."""
    generator = np.random.default_rng(0)
    for name, difference in (('dry', 0), ('wet', 2000)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(4):
            values = generator.normal(1500, 300, (20, 24, 6))
            values[..., -1] += difference
            save_bands(folder / name / f'{i}{suffix}', values.clip(0, 9999).astype(np.uint16))
    return folder


def save_bands(path: Path, values: np.ndarray, **options: object) -> None:
    """Values (H, W, bands) as ``.npy``, or as a TIFF with tifffile's options."""
    if path.suffix == '.npy':
        np.save(path, values)
        return
    import tifffile

    layout = dict(photometric='minisblack', planarconfig='contig')
    tifffile.imwrite(path, values, **{**layout, **options})
