"""The scenes of :mod:`foreign_data` in more formats, and a table of all formats with boxes.

Squares are written as polygons where a format has them, and bars as boxes, so that both are read.
Some files also have items that readers must leave out: a lane, a polyline, a tag, an unused class.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from foreign_data import BOXES, CLASSES, Boxes, save, write
from image_folders import scenes

CODES = dict(bar='/m/0b', square='/m/0s')  # of classes, as in Open Images


def save_scenes(folder: Path, subfolder: str, suffix: str = 'png') -> Iterator[tuple[str, Boxes]]:
    """Save ten scenes, and yield the name and the boxes of each."""
    for i, (image, boxes) in enumerate(scenes(10)):
        save(folder, f'{subfolder}/{i}.{suffix}', image)
        yield f'{i}.{suffix}', boxes


def outline_of(left: int, top: int, right: int, bottom: int) -> list[int]:
    return [left, top, right, top, right, bottom, left, bottom]


def bdd(folder: Path) -> None:
    rows = [
        dict(
            name=name,
            labels=[
                dict(category=label, box2d=dict(zip(('x1', 'y1', 'x2', 'y2'), box, strict=True)))
                for label, box in boxes
            ]
            + [dict(category='lane', poly2d=[])],
        )
        for name, boxes in save_scenes(folder, 'images/100k/train', 'jpg')
    ]
    write(folder, 'labels/bdd100k_labels_images_train.json', json.dumps(rows))


def hugging_face(folder: Path) -> None:
    rows = [
        dict(
            file_name=name,
            objects=dict(
                bbox=[
                    [left, top, right - left, bottom - top]
                    for _, (left, top, right, bottom) in boxes
                ],
                category=[label for label, _ in boxes],
            ),
        )
        for name, boxes in save_scenes(folder, 'train')
    ]
    write(folder, 'train/metadata.jsonl', '\n'.join(map(json.dumps, rows)))


def datumaro(folder: Path) -> None:
    items = []
    for name, boxes in save_scenes(folder, 'images/default'):
        shapes: list[dict[str, Any]] = []
        for label, (left, top, right, bottom) in boxes:
            shape = dict(type='bbox', bbox=[left, top, right - left, bottom - top])
            if label == 'square':
                shape = dict(type='polygon', points=outline_of(left, top, right, bottom))
            shapes.append(dict(shape, id=len(shapes), label_id=CLASSES.index(label)))
        shapes.append(dict(id=2, type='polyline', label_id=0, points=[1, 2, 3, 4]))
        image = dict(path=name, size=[48, 64])
        items.append(dict(id=Path(name).stem, annotations=shapes, attr={}, image=image))
    labels = [dict(name=name, parent='', attributes=[]) for name in CLASSES]
    content = dict(info={}, categories=dict(label=dict(labels=labels)), items=items)
    write(folder, 'annotations/default.json', json.dumps(content))


def supervisely(folder: Path) -> None:
    for name, boxes in save_scenes(folder, 'ds0/img', 'jpg'):
        figures = []
        for label, (left, top, right, bottom) in boxes:
            points = [[left, top], [right, bottom]]
            shape = 'rectangle'
            if label == 'square':
                points = [[left, top], [right, top], [right, bottom], [left, bottom]]
                shape = 'polygon'
            figure = dict(classTitle=label, geometryType=shape)
            figures.append(dict(figure, points=dict(exterior=points, interior=[])))
        content = dict(size=dict(height=48, width=64), tags=[], objects=figures)
        write(folder, f'ds0/ann/{name}.json', json.dumps(content))
    classes = [dict(title=name, shape='any', color='#ff0000') for name in CLASSES]
    write(folder, 'meta.json', json.dumps(dict(classes=classes, tags=[])))


def darwin(folder: Path) -> None:
    for name, boxes in save_scenes(folder, 'images'):
        rows: list[dict[str, Any]] = [dict(name='a tag', tag={})]
        for label, (left, top, right, bottom) in boxes:
            row = dict(name=label, bounding_box=dict(x=left, y=top, w=right - left, h=bottom - top))
            if label == 'square':
                corners = outline_of(left, top, right, bottom)
                path = [dict(x=x, y=y) for x, y in zip(corners[::2], corners[1::2], strict=True)]
                row['polygon'] = dict(paths=[path])
            rows.append(row)
        item = dict(name=name, path='/', slots=[dict(slot_name='0', width=64, height=48)])
        content = dict(version='2.0', item=item, annotations=rows)
        write(folder, f'releases/latest/annotations/{Path(name).stem}.json', json.dumps(content))


def cvat(folder: Path) -> None:
    rows = ['<annotations><version>1.1</version>']
    for number, (name, boxes) in enumerate(save_scenes(folder, 'images')):
        rows.append(f'<image id="{number}" name="{name}" width="64" height="48">')
        for label, (left, top, right, bottom) in boxes:
            corners = f'xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}"'
            if label == 'square':
                points = f'{left},{top};{right},{top};{right},{bottom};{left},{bottom}'
                rows.append(f'<polygon label="{label}" points="{points}" z_order="0"></polygon>')
            else:
                rows.append(f'<box label="{label}" occluded="0" {corners} z_order="0"></box>')
        rows.append('</image>')
    write(folder, 'annotations.xml', '\n'.join([*rows, '</annotations>']))


def label_studio(folder: Path) -> None:
    tasks = []
    for number, (name, boxes) in enumerate(save_scenes(folder, 'images')):
        results = []
        for label, (left, top, right, bottom) in boxes:
            x, y, x2, y2 = 100 * left / 64, 100 * top / 48, 100 * right / 64, 100 * bottom / 48
            shape = 'polygon' if label == 'square' else 'rectangle'
            value: dict[str, Any] = {f'{shape}labels': [label]}
            if shape == 'polygon':
                value['points'] = [[x, y], [x2, y], [x2, y2], [x, y2]]
            else:
                value |= dict(x=x, y=y, width=x2 - x, height=y2 - y, rotation=0)
            size = dict(original_width=64, original_height=48, image_rotation=0)
            results.append(dict(size, type=f'{shape}labels', value=value))
        image = f'/data/upload/1/0a1b2c3d-{name}'
        row = dict(result=results, was_cancelled=False)
        tasks.append(dict(id=number, data=dict(image=image), annotations=[row], predictions=[]))
    write(folder, 'project-1-at-2024.json', json.dumps(tasks))


def via_images(folder: Path) -> dict[str, dict[str, Any]]:
    """VIA's regions of images that are in the folder of its project, by the keys that VIA uses."""
    images = {}
    for name, boxes in save_scenes(folder, '.', 'jpg'):
        regions = []
        for label, (left, top, right, bottom) in boxes:
            shape = dict(name='rect', x=left, y=top, width=right - left, height=bottom - top)
            if label == 'square':
                corners = outline_of(left, top, right, bottom)
                shape = dict(name='polygon', all_points_x=corners[::2], all_points_y=corners[1::2])
            regions.append(dict(shape_attributes=shape, region_attributes=dict(kind=label)))
        size = (folder / name).stat().st_size
        images[f'{name}{size}'] = dict(
            filename=name, size=size, regions=regions, file_attributes={}
        )
    return images


def via(folder: Path) -> None:
    write(folder, 'via_project.json', json.dumps(dict(_via_img_metadata=via_images(folder))))


def via_table(folder: Path) -> None:
    header = 'filename,file_size,file_attributes,region_count,region_id'
    lines = [f'{header},region_shape_attributes,region_attributes']
    for image in via_images(folder).values():
        for number, region in enumerate(image['regions']):
            first = f'{image["filename"]},{image["size"]},"{{}}",{len(image["regions"])},{number}'
            cells = (json.dumps(cell).replace('"', '""') for cell in region.values())
            lines.append(','.join([first, *(f'"{cell}"' for cell in cells)]))
    write(folder, 'via_export_csv.csv', '\n'.join(lines))


def open_images(folder: Path) -> None:
    lines = ['ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf']
    for name, boxes in save_scenes(folder, 'train'):
        for label, (left, top, right, bottom) in boxes:
            shares = f'{left / 64},{right / 64},{top / 48},{bottom / 48}'
            lines.append(f'{Path(name).stem},xclick,{CODES[label]},1,{shares},0')
    write(folder, 'train-annotations-bbox.csv', '\n'.join(lines))
    write(folder, 'classes.csv', '/m/0b,bar\n/m/0s,square\n/m/0x,circle')


def tensorflow(folder: Path) -> None:
    lines = ['sep=;', 'filename;width;height;class;xmin;ymin;xmax;ymax']
    for name, boxes in save_scenes(folder, 'images'):
        lines += [f'{name};64;48;{label};{";".join(map(str, box))}' for label, box in boxes]
    write(folder, 'labels.csv', '\n'.join(lines))


# The class and the corners of each box of ten scenes.
EXPECTED_BOXES = Counter((name, *box) for _, boxes in scenes(10) for name, box in boxes)
# By the function that writes ten scenes: the format, and whether the folder states the splits.
BOX_SCENES: dict[Callable[[Path], None], tuple[str, bool]] = {
    **BOXES,
    bdd: ('BDD100K', False),
    darwin: ('V7 Darwin', False),
    cvat: ('CVAT', False),
    datumaro: ('Datumaro', False),
    hugging_face: ('Hugging Face', False),
    label_studio: ('Label Studio', False),
    open_images: ('Open Images', False),
    supervisely: ('Supervisely', False),
    tensorflow: ('a table', False),
    via: ('VGG Image Annotator', False),
    via_table: ('VGG Image Annotator', False),
}
