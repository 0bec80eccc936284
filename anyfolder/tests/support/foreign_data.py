"""Write the same ten scenes in the folders and formats that labeling programs export.

:func:`~image_folders.scenes` draws them: a bright square and a dark bar in each image.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from image_folders import scenes
from PIL import Image

CLASSES = ('bar', 'square')
SIZE = 64, 48  # width and height of a scene
Boxes = list[tuple[str, tuple[int, int, int, int]]]  # name, and left, top, right, bottom


def save(folder: Path, name: str, image: np.ndarray) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(folder / name)


def write(folder: Path, name: str, text: str, encoding: str = 'utf-8') -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding=encoding)


def yolo_lines(boxes: Boxes, outlines: bool = False) -> str:
    """A line for each box, as center and size, or as its four corners."""
    lines, (width, height) = [], SIZE
    for name, corners in boxes:
        left, right = (x / width for x in corners[::2])
        top, bottom = (y / height for y in corners[1::2])
        values = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
        if outlines:
            values = [left, top, right, top, right, bottom, left, bottom]
        lines.append(' '.join([str(CLASSES.index(name)), *(f'{value:.6f}' for value in values)]))
    return '\n'.join(lines) + '\n'


def voc_xml(name: str, boxes: Boxes, size: tuple[int, int] = SIZE) -> str:
    width, height = size
    objects = ''.join(
        f'<object><name>{label}</name><bndbox><xmin>{left + 1}</xmin><ymin>{top + 1}</ymin>'
        f'<xmax>{right + 1}</xmax><ymax>{bottom + 1}</ymax></bndbox></object>'
        for label, (left, top, right, bottom) in boxes
    )
    header = f'<size><width>{width}</width><height>{height}</height><depth>3</depth></size>'
    return f'<annotation><filename>{name}</filename>{header}{objects}</annotation>'


def coco_json(
    names: list[str],
    boxes_of_images: list[Boxes],
    first_id: int = 1,
    categories: list[dict] | None = None,
) -> str:
    """COCO's annotations, with ``first_id`` as the category id of the first class."""
    content = dict(
        images=[],
        annotations=[],
        categories=categories
        or [dict(id=first_id + i, name=name) for i, name in enumerate(CLASSES)],
    )
    for number, (name, boxes) in enumerate(zip(names, boxes_of_images, strict=True)):
        content['images'].append(dict(id=number, file_name=name, width=64, height=48))
        for label, (left, top, right, bottom) in boxes:
            outline = [left, top, right, top, right, bottom, left, bottom]
            content['annotations'].append(
                dict(
                    id=len(content['annotations']),
                    image_id=number,
                    category_id=first_id + CLASSES.index(label),
                    iscrowd=0,
                    bbox=[left, top, right - left, bottom - top],
                    segmentation=[outline],
                    area=(right - left) * (bottom - top),
                )
            )
    return json.dumps(content)


def split_of_number(i: int) -> str:
    """The split of a scene, by Roboflow's names: six, two and two of the ten."""
    return 'train' if i < 6 else 'valid' if i < 8 else 'test'


def roboflow_yolo(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        split = split_of_number(i)
        save(folder, f'{split}/images/{i}_jpg.rf.abc.jpg', image)
        write(folder, f'{split}/labels/{i}_jpg.rf.abc.txt', yolo_lines(boxes))
    write(
        folder,
        'data.yaml',
        'train: ../train/images\nval: ../valid/images\ntest: ../test/images\n\nnc: 2\n'
        "names: ['bar', 'square']\n",
    )
    write(folder, 'README.dataset.txt', '# shapes\n')


def ultralytics_yolo(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        split = dict(train='train', valid='val', test='test')[split_of_number(i)]
        save(folder, f'images/{split}/{i}.jpg', image)
        write(folder, f'labels/{split}/{i}.txt', yolo_lines(boxes, outlines=i % 2 == 0))
    write(
        folder,
        'data.yaml',
        'path: ../datasets/shapes\ntrain: images/train\nval: images/val\ntest: images/test\n'
        'names:\n  0: bar\n  1: square\n',
    )


def labelimg_yolo(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'images/{i}.png', image)
        write(folder, f'labels/{i}.txt', yolo_lines(boxes).replace('\n', '\r\n'))
    write(folder, 'labels/classes.txt', '\ufeffbar\r\nsquare\r\n')


def label_studio_yolo(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'images/a1b2c3d4-{i}.jpg', image)
        write(folder, f'labels/a1b2c3d4-{i}.txt', yolo_lines(boxes))
    write(folder, 'classes.txt', 'bar\nsquare\n')
    write(
        folder, 'notes.json', '{"categories": [{"id": 0, "name": "bar"}], "info": {"year": 2024}}'
    )


def cvat_yolo(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'obj_train_data/{i}.jpg', image)
        write(folder, f'obj_train_data/{i}.txt', yolo_lines(boxes))
    write(folder, 'obj.names', 'bar\nsquare\n')
    write(
        folder,
        'obj.data',
        'classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n',
    )
    write(folder, 'train.txt', ''.join(f'data/obj_train_data/{i}.jpg\n' for i in range(10)))


def roboflow_coco(folder: Path) -> None:
    for split in ('train', 'valid', 'test'):
        chosen = [(i, scene) for i, scene in enumerate(scenes(10)) if split_of_number(i) == split]
        for i, (image, _) in chosen:
            save(folder, f'{split}/{i}.jpg', image)
        categories = [
            dict(id=0, name='shapes', supercategory='none'),
            *(dict(id=1 + i, name=name, supercategory='shapes') for i, name in enumerate(CLASSES)),
        ]
        write(
            folder,
            f'{split}/_annotations.coco.json',
            coco_json(
                [f'{i}.jpg' for i, _ in chosen],
                [boxes for _, (_, boxes) in chosen],
                categories=categories,
            ),
        )


def cvat_coco(folder: Path) -> None:
    for i, (image, _) in enumerate(scenes(10)):
        save(folder, f'images/default/{i}.jpg', image)
    write(
        folder,
        'annotations/instances_default.json',
        coco_json([f'{i}.jpg' for i in range(10)], [boxes for _, boxes in scenes(10)]),
    )


def label_studio_coco(folder: Path) -> None:
    for i, (image, _) in enumerate(scenes(10)):
        save(folder, f'images/a1b2-{i}.jpg', image)
    write(
        folder,
        'result.json',
        coco_json(
            [f'images\\a1b2-{i}.jpg' for i in range(10)],
            [boxes for _, boxes in scenes(10)],
            first_id=0,
        ),
    )


def roboflow_voc(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'{split_of_number(i)}/{i}.jpg', image)
        write(folder, f'{split_of_number(i)}/{i}.xml', voc_xml(f'{i}.jpg', boxes))


def cvat_voc(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'JPEGImages/{i}.png', image)
        write(folder, f'Annotations/{i}.xml', voc_xml(f'{i}.png', boxes))
    write(folder, 'ImageSets/Main/default.txt', ''.join(f'{i}\n' for i in range(10)))
    write(
        folder,
        'labelmap.txt',
        '# label:color_rgb:parts:actions\nbackground:0,0,0::\nbar:128,0,0::\n',
    )


def labelme(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'{i}.jpg', image)
        shapes = []
        for label, (left, top, right, bottom) in boxes:
            points = [[right, bottom], [left, top]]
            if label == 'square':
                points = [[left, top], [right, top], [right, bottom], [left, bottom]]
            shapes.append(
                dict(
                    label=label,
                    points=points,
                    group_id=None,
                    flags={},
                    shape_type='polygon' if label == 'square' else 'rectangle',
                )
            )
        write(
            folder,
            f'{i}.json',
            json.dumps(
                dict(
                    version='5.5.0',
                    flags={},
                    shapes=shapes,
                    imagePath=f'..\\raw\\{i}.jpg',
                    imageData=None,
                    imageHeight=48,
                    imageWidth=64,
                )
            ),
        )


def createml(folder: Path) -> None:
    for split in ('train', 'valid', 'test'):
        rows = []
        for i, (image, boxes) in enumerate(scenes(10)):
            if split_of_number(i) == split:
                save(folder, f'{split}/{i}.jpg', image)
                rows.append(
                    dict(
                        image=f'{i}.jpg',
                        annotations=[
                            dict(
                                label=label,
                                coordinates=dict(
                                    x=(left + right) / 2,
                                    y=(top + bottom) / 2,
                                    width=right - left,
                                    height=bottom - top,
                                ),
                            )
                            for label, (left, top, right, bottom) in boxes
                        ],
                    )
                )
        write(folder, f'{split}/_annotations.createml.json', json.dumps(rows))


# By the function that writes ten scenes: the format, and whether the folder states the splits.
BOXES: dict[Callable[[Path], None], tuple[str, bool]] = {
    roboflow_yolo: ('YOLO', True),
    ultralytics_yolo: ('YOLO', True),
    labelimg_yolo: ('YOLO', False),
    label_studio_yolo: ('YOLO', False),
    cvat_yolo: ('YOLO', False),
    roboflow_coco: ('COCO', True),
    cvat_coco: ('COCO', False),
    label_studio_coco: ('COCO', False),
    roboflow_voc: ('Pascal VOC', True),
    cvat_voc: ('Pascal VOC', False),
    labelme: ('LabelMe', False),
    createml: ('CreateML', True),
}


def class_mask(boxes: Boxes) -> np.ndarray:
    """A mask (H, W) of 0, or the number of the class from 1; squares cover bars."""
    mask = np.zeros(SIZE[::-1], np.uint8)
    for name, (left, top, right, bottom) in sorted(boxes):
        mask[top:bottom, left:right] = 1 + CLASSES.index(name)
    return mask


# The colors of the background and of each class, in RGB.
COLORS = np.array([[0, 0, 0], [250, 50, 83], [51, 221, 255]], np.uint8)


def plain_masks(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'images/{i}.jpg', image)
        save(folder, f'masks/{i}.png', class_mask(boxes))
    write(folder, 'classes.txt', 'background\nbar\nsquare\n')


def cvat_masks(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'JPEGImages/{i}.jpg', image)
        save(folder, f'SegmentationClass/{i}.png', COLORS[class_mask(boxes)])
        save(folder, f'SegmentationObject/{i}.png', COLORS[class_mask(boxes)[:, ::-1]])
    write(folder, 'ImageSets/Segmentation/default.txt', ''.join(f'{i}\n' for i in range(10)))
    write(
        folder,
        'labelmap.txt',
        '# label:color_rgb:parts:actions\nbackground:0,0,0::\nbar:250,50,83::\n'
        'square:51,221,255::\n',
    )


def roboflow_masks(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'{split_of_number(i)}/{i}_jpg.rf.abc.jpg', image)
        save(folder, f'{split_of_number(i)}/{i}_jpg.rf.abc_mask.png', class_mask(boxes))
        write(
            folder,
            f'{split_of_number(i)}/_classes.csv',
            'Pixel Value, Class\n0, background\n1, bar\n2, square\n',
        )


def voc_masks(folder: Path) -> None:
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'JPEGImages/{i}.jpg', image)
        mask = Image.fromarray(class_mask(boxes)).convert('P')
        mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, *[7] * 759])  # three colors are in use
        (folder / 'SegmentationClass').mkdir(exist_ok=True)
        mask.save(folder / f'SegmentationClass/{i}.png')
    write(folder, 'classes.txt', 'background\nbar\nsquare\n')
    for name, chosen in (('train', range(6)), ('val', range(6, 8))):
        write(folder, f'ImageSets/Segmentation/{name}.txt', ''.join(f'{i}\n' for i in chosen))


# By the function that writes ten scenes: the number of training, validation and test images. If the
# folder states no split, one image is held out for validation.
MASKS: dict[Callable[[Path], None], tuple[int, int, int]] = {
    plain_masks: (9, 1, 0),
    cvat_masks: (9, 1, 0),
    roboflow_masks: (6, 2, 2),
    voc_masks: (6, 2, 0),
    cvat_coco: (9, 1, 0),
    labelme: (9, 1, 0),
}
