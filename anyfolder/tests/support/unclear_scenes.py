"""Write ambiguous folders, and state what reading each must give with the suggested layout file.

The error on each of them ends with that layout file.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from foreign_data import coco_json, voc_xml, write
from public_maps import mask_of
from public_scene import Scene


class Unclear(NamedTuple):
    """A folder that is rejected, and what is read with the layout file that its error suggests.

    Attributes:
        write: writes the folder.
        task: the task that it is read for.
        words: part of the error's sentence.
        classes: the class names that are read.
        images: the number of images that are read.
    """

    write: Callable[[Scene], None]
    task: str
    words: str
    classes: tuple[str, ...]
    images: int


def split_words(scene: Scene) -> None:
    for folder in ('seg_train', 'seg_test'):
        for name in ('sea', 'street'):
            scene.images(*(f'{folder}/{folder}/{name}/{folder}{i}.jpg' for i in range(3)))


def shared_folders(scene: Scene) -> None:
    for folder in ('part1', 'part2'):
        for name in ('sea', 'street'):
            scene.images(*(f'{folder}/{name}/{folder}{i}.jpg' for i in range(3)))


def classes_again(scene: Scene) -> None:
    """More images of both classes in a folder next to the class folders."""
    for part in ('', 'more/'):
        for name in ('sea', 'street'):
            scene.images(*(f'{part}{name}/{part[:1]}{i}.jpg' for i in range(4)))


def only_test(scene: Scene) -> None:
    for name in ('sea', 'street'):
        scene.images(*(f'test/{name}/{name}{i}.jpg' for i in range(4)))
    scene.text('notes/about.md', 'The test')


def only_test_by_list(scene: Scene) -> None:
    for name in ('sea', 'street'):
        scene.images(*(f'{name}/{name}{i}.jpg' for i in range(4)))
    scene.text(
        'test.txt', *(f'{name}/{name}{i}.jpg' for name in ('sea', 'street') for i in range(4))
    )


def table(scene: Scene, header: str, row: Callable[[int], str]) -> None:
    """24 images, and a table; ``row`` gives the cells after the file name."""
    scene.images(*(f'images/{i}.jpg' for i in range(24)))
    scene.text('data.csv', header, *(f'{i}.jpg,{row(i)}' for i in range(24)))


def no_label_column(scene: Scene) -> None:
    table(scene, 'file,dx,place', lambda i: f'{"nv" if i % 2 else "mel"},arm')


def label_of_dicts(scene: Scene, name: str = 'data.csv') -> None:
    scene.images(*(f'images/{i}.jpg' for i in range(24)))
    labels = [dict(kind='b' if i % 2 else 'a', seen='day') for i in range(24)]
    if name.endswith('.jsonl'):
        scene.text(
            name, *(json.dumps(dict(file=f'{i}.jpg', label=row)) for i, row in enumerate(labels))
        )
    else:
        scene.text(name, 'file,label', *(f'{i}.jpg,"{row}"' for i, row in enumerate(labels)))


def label_of_objects(scene: Scene) -> None:
    label_of_dicts(scene, 'metadata.jsonl')


def unknown_split(scene: Scene) -> None:
    table(
        scene, 'file,label,split', lambda i: f'{"a" if i % 2 else "b"},{"one" if i < 20 else "two"}'
    )


def measured_labels(scene: Scene) -> None:
    table(scene, 'file,weight', lambda i: f'{1 + i % 12 * 0.5}')


def two_tables(scene: Scene) -> None:
    table(scene, 'file,label', lambda i: 'a' if i % 2 else 'b')
    scene.text('other.csv', 'file,label', *(f'{i}.jpg,{"a" if i % 3 else "b"}' for i in range(24)))


def table_next_to_folders(scene: Scene) -> None:
    names = [f'p{i // 3}/{i}.jpg' for i in range(12)]
    scene.images(*names)
    rows = (f'{name},{"benign" if i // 3 % 2 else "malignant"}' for i, name in enumerate(names))
    scene.text('labels.csv', 'file,label', *rows)


def texts_with_classes(scene: Scene, name: str = '{}.txt') -> None:
    for i in range(12):
        scene.images(f'photos/{i}.jpg')
        scene.text(f'photos/{name.format(i)}', ('cat', 'dog')[i % 2])


def texts_after_names(scene: Scene) -> None:
    texts_with_classes(scene, '{}.jpg.txt')


def lines_with_boxes(scene: Scene) -> None:
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        rows = 'Car 0 -1.5 5 6 25 16', 'Van 0 1.2 1 1 30 20', 'Car 0 0.3 9 9 39 29'
        scene.text(f'annotations/{i}.txt', *rows)


def box_table(scene: Scene) -> None:
    """The upper left corner and size, in columns that other tables use for the center."""
    scene.images(*(f'images/{i}.jpg' for i in range(12)))
    rows = (f'{i},{i},{i},20,15,{("car", "bus")[i % 2]}' for i in range(12))
    scene.text('boxes.csv', 'image_id,x,y,width,height,label', *rows)


def box_table_without_header(scene: Scene) -> None:
    """As makesense.ai writes it."""
    scene.images(*(f'images/{i}.jpg' for i in range(12)))
    rows = (f'{("car", "bus")[i % 2]},{10 + i},{8 + i},9,7,{i}.jpg,40,30' for i in range(12))
    scene.text('boxes.csv', *rows)


def boxes_next_to_folders(scene: Scene) -> None:
    """A table of boxes without a header, next to folders that may be classes."""
    names = [f'{("sea", "street")[i // 6]}/{i}.jpg' for i in range(12)]
    scene.images(*names)
    classes = 'car', 'bus'
    rows = (f'{name},{i},{i},{i + 20},{i + 15},{classes[i % 2]}' for i, name in enumerate(names))
    scene.text('boxes.csv', *rows)


def coco(scene: Scene) -> None:
    names = [f'{i}.jpg' for i in range(8)]
    scene.images(*(f'images/{name}' for name in names), size=(64, 48))
    content = coco_json(names, [[('bar', (5, 6, 25, 16))]] * 8)
    write(scene.folder, 'instances.json', content)


def two_formats(scene: Scene) -> None:
    coco(scene)
    for i in range(8):
        write(scene.folder, f'xml/{i}.xml', voc_xml(f'{i}.jpg', [('bar', (5, 6, 25, 16))]))


def corners_as_sizes(scene: Scene) -> None:
    coco(scene)
    content = json.loads((scene.folder / 'instances.json').read_text())
    for annotation in content['annotations']:
        annotation |= dict(bbox=[30, 20, 60, 46], segmentation=[])
    scene.text('instances.json', json.dumps(content))


def yolo(scene: Scene, line: str) -> None:
    for i in range(12):
        scene.images(f'images/{i}.jpg')
        scene.text(f'labels/{i}.txt', line)


def yolo_without_names(scene: Scene) -> None:
    yolo(scene, '1 0.5 0.5 0.4 0.4')


def yolo_keypoints(scene: Scene) -> None:
    yolo(scene, '0 0.5 0.5 0.4 0.4 0.45 0.5 2 0.55 0.5 1')
    scene.text('classes.txt', 'person')


def yolo_six_values(scene: Scene) -> None:
    for i in range(4):
        scene.images(f'images/{i}.jpg')
        scene.text(f'labels/{i}.txt', f'0 0.5 0.5 0.4 0.4 0.{4 + i} 0.77')
    scene.text('classes.txt', 'person')


def masks(scene: Scene, *arrays: np.ndarray, suffix: str = '.png') -> None:
    for i in range(6):
        scene.images(f'images/{i}.png')
        scene.array(f'masks/{i}{suffix}', arrays[i % len(arrays)])


def masks_of_objects(scene: Scene, count: int = 2) -> None:
    """Six images with ``count`` masks each, with a square at another position in each mask."""
    for i in range(6):
        scene.images(f'cell {i}/images/{i}.png')
        for k in range(count):
            scene.array(f'cell {i}/masks/{k}.png', mask_of(0, *[0] * k, 255))


def lossy_masks(scene: Scene) -> None:
    masks(scene, mask_of(0, 128, 255, 60), suffix='.jpg')


def smoothed_masks(scene: Scene) -> None:
    masks(scene, np.tile(np.linspace(0, 255, 40).astype(np.uint8), (30, 1)))


def colors(*values: tuple[int, int, int]) -> np.ndarray:
    """A mask (H, W, 3) with a stripe of 8 rows in each color."""
    pixels = np.zeros((30, 40, 3), np.uint8)
    for i, value in enumerate(values):
        pixels[8 * i : 8 * i + 8] = value
    return pixels


def unnamed_color(scene: Scene) -> None:
    masks(scene, colors((250, 0, 0), (0, 250, 0), (9, 8, 7)))
    scene.text('class_dict.csv', 'name,r,g,b', 'sky,250,0,0', 'sea,0,250,0', 'void,0,0,0')


def one_class_or_two(scene: Scene) -> None:
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        scene.array(f'masks/{i}.png', mask_of(255, 1))


def colors_and_names(scene: Scene) -> None:
    masks(scene, colors((250, 0, 0), (0, 250, 0)))
    scene.text('classes.txt', 'void', 'sea', 'sky')


def values_and_names(scene: Scene) -> None:
    masks(scene, mask_of(0, 3, 7))
    scene.text('classes.txt', 'void', 'sea')


def two_maps(scene: Scene) -> None:
    random = np.random.default_rng(0)
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        for subfolder in ('masks', '1st_manual'):
            values = random.integers(0, 3, (3, 4), np.uint8)
            scene.array(f'{subfolder}/{i}.png', values.repeat(10, 0).repeat(10, 1))


def depths(
    scene: Scene, factor: float, suffix: str = '.npy', count: int = 6, first: int = 0
) -> None:
    """Images from number ``first`` on, with depth maps of 1 to 3 m, with ``factor`` units per m."""
    for i in range(first, first + count):
        scene.images(f'images/{i}.jpg')
        values = np.linspace(1, 3, 1200).reshape(30, 40) * factor
        dtype = np.uint16 if suffix == '.png' else np.float32
        scene.array(f'depth/{i}{suffix}', values.astype(dtype))


def two_kinds_of_depth(scene: Scene) -> None:
    depths(scene, 1)
    depths(scene, 1000, '.png', count=2, first=6)


def depth_in_millimeters(scene: Scene) -> None:
    depths(scene, 1000)


def depth_of_8_bits(scene: Scene) -> None:
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        scene.array(f'depth/{i}.png', np.linspace(40, 250, 1200).reshape(30, 40).astype(np.uint8))


def disparity(scene: Scene) -> None:
    depths(scene, 1000, '.png')
    (scene.folder / 'depth').rename(scene.folder / 'disparity')


def classes_in_names(scene: Scene) -> None:
    """As Dogs vs. Cats unpacks."""
    scene.images(*(f'train/{name}.{i}.jpg' for name in ('cat', 'dog') for i in range(6)))
    scene.images(*(f'test1/{i}.jpg' for i in range(1, 4)))


def voc_list_of_other_images(scene: Scene) -> None:
    for i in range(8):
        scene.images(f'JPEGImages/{i}.jpg', size=(64, 48))
        write(scene.folder, f'Annotations/{i}.xml', voc_xml(f'{i}.jpg', [('bar', (5, 6, 25, 16))]))
    scene.text('ImageSets/Main/train.txt', 'a', 'b')


def several_divisions(scene: Scene) -> None:
    names = [f'{name}/{name}{i}.jpg' for name in ('sea', 'street') for i in range(6)]
    scene.images(*names)
    for number in (1, 2):
        for k, split in enumerate(('train', 'val', 'test')):
            listed = [name for i, name in enumerate(names) if (i + number) % 3 == k]
            scene.text(f'splits/{split}{number}.txt', *listed)


# Writer, task, part of the error, and the classes and number of images with the suggested layout.
UNCLEAR = [
    Unclear(split_words, 'classification', 'classes or splits', ('sea', 'street'), 12),
    Unclear(shared_folders, 'classification', 'classes or splits', ('sea', 'street'), 12),
    Unclear(classes_again, 'classification', 'classes again', ('sea', 'street'), 16),
    Unclear(only_test, 'classification', "no folder 'train'", ('sea', 'street'), 8),
    Unclear(only_test_by_list, 'classification', 'none to train on', ('sea', 'street'), 8),
    Unclear(no_label_column, 'classification', 'none of them is called label', ('mel', 'nv'), 24),
    Unclear(label_of_dicts, 'classification', 'write the class names', ('a', 'b'), 24),
    Unclear(label_of_objects, 'classification', 'write the class names', ('a', 'b'), 24),
    Unclear(unknown_split, 'classification', 'none of which is train', ('a', 'b'), 24),
    Unclear(
        measured_labels, 'classification', 'labels must be names',
        tuple(sorted(str(1 + i * 0.5) for i in range(12))), 24,
    ),
    Unclear(two_tables, 'classification', 'have different classes', ('a', 'b'), 24),
    Unclear(table_next_to_folders, 'classification', 'labels.csv', ('benign', 'malignant'), 12),
    Unclear(texts_with_classes, 'classification', 'may have the class of', ('cat', 'dog'), 12),
    Unclear(texts_after_names, 'classification', 'may have the class of', ('cat', 'dog'), 12),
    Unclear(boxes_next_to_folders, 'classification', 'may have boxes', ('sea', 'street'), 12),
    Unclear(boxes_next_to_folders, 'detection', 'has no boxes', ('bus', 'car'), 12),
    Unclear(lines_with_boxes, 'detection', 'has no boxes', ('Car', 'Van'), 6),
    Unclear(box_table, 'detection', 'has no boxes', ('bus', 'car'), 12),
    Unclear(box_table_without_header, 'detection', 'has no boxes', ('bus', 'car'), 12),
    Unclear(two_formats, 'detection', 'keep one of them', ('bar',), 8),
    Unclear(corners_as_sizes, 'detection', 'seem to be left, top, right', ('bar',), 8),
    Unclear(yolo_without_names, 'detection', 'no file with the names', ('class 1',), 12),
    Unclear(yolo_keypoints, 'detection', 'keypoints', ('person',), 12),
    Unclear(yolo_six_values, 'detection', 'two more values', ('person',), 4),
    Unclear(masks_of_objects, 'instance', 'may show one object each', ('object',), 6),
    Unclear(lossy_masks, 'segmentation', 'JPEG', ('class 0', 'class 255'), 6),
    Unclear(smoothed_masks, 'segmentation', 'smoothed', ('class 0', 'class 255'), 6),
    Unclear(one_class_or_two, 'segmentation', 'class and unlabeled', ('class 1', 'class 255'), 6),
    Unclear(unnamed_color, 'segmentation', 'does not name', ('sky', 'sea', 'void'), 6),
    Unclear(colors_and_names, 'segmentation', 'names without colors', ('void', 'sea', 'sky'), 6),
    Unclear(values_and_names, 'segmentation', 'classes have names', ('void', 'sea'), 6),
    Unclear(two_maps, 'segmentation', 'which maps', ('class 0', 'class 1', 'class 2'), 6),
    Unclear(two_kinds_of_depth, 'depth', 'whose units differ', (), 6),
    Unclear(depth_in_millimeters, 'depth', 'too far for a photograph', (), 6),
    Unclear(depth_of_8_bits, 'depth', '8 bits', (), 6),
    Unclear(disparity, 'depth', 'its inverse', (), 6),
    Unclear(classes_in_names, 'classification', "such as 'cat.0.jpg'", ('cat', 'dog'), 12),
    Unclear(voc_list_of_other_images, 'detection', 'has an annotation', ('bar',), 8),
    Unclear(several_divisions, 'classification', 'one division', ('sea', 'street'), 12),
]  # fmt: skip
