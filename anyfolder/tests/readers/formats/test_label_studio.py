"""Label Studio's JSON of tasks and its JSON-MIN."""

import json
from pathlib import Path

import pytest
from public_scene import Scene

import anyfolder
from anyfolder.readers.formats.label_studio import is_label_studio, parse_label_studio
from anyfolder.readers.geometry import box_around

FILE = Path('project.json')
RECTANGLE = dict(x=10, y=25, width=50, height=20, rotation=0, rectanglelabels=['car'])
SIZE = dict(original_width=200, original_height=100, image_rotation=0)


def result(value, kind='rectanglelabels') -> dict:
    return dict(SIZE, id='r', type=kind, from_name='label', to_name='image', value=value)


def task(*results, image='/data/upload/1/0123abcd-a.jpg') -> dict:
    """A task of the full JSON."""
    return dict(id=1, data=dict(image=image), annotations=[dict(result=[*results])])


def minimal(*regions, image='/data/upload/1/0123abcd-a.jpg') -> dict:
    """A task of JSON-MIN."""
    regions = [dict(SIZE, **region) for region in regions]
    return dict(image=image, id=1, label=regions, annotator=1, annotation_id=2, lead_time=3.5)


def parse(*tasks):
    return parse_label_studio([*tasks], FILE)


def objects(*tasks):
    [image] = parse(*tasks).images
    return image.objects


@pytest.mark.parametrize('content', [task(result(RECTANGLE)), minimal(RECTANGLE)])
def test_rectangles_are_in_percent(content):
    assert is_label_studio([content], FILE)
    [image] = parse(content).images
    [found] = image.objects
    assert image.name == '/data/upload/1/0123abcd-a.jpg'
    assert image.stated_size == (200, 100)
    assert (found.name, found.form, found.relative) == ('car', 'xywh', True)
    assert found.box == pytest.approx([0.1, 0.25, 0.5, 0.2])


@pytest.mark.parametrize('write', [lambda value: task(result(value, 'x')), minimal])
def test_polygons_and_ellipses(write):
    polygon = dict(points=[[10, 20], [30, 20], [30, 60]], closed=True, polygonlabels=['a'])
    [found] = objects(write(polygon))
    assert found.relative
    assert found.segmentation[0] == pytest.approx([0.1, 0.2, 0.3, 0.2, 0.3, 0.6])
    ellipse = dict(x=50, y=40, radiusX=10, radiusY=20, rotation=0, ellipselabels=['a'])
    [found] = objects(write(ellipse))
    assert box_around(found.segmentation) == pytest.approx((0.4, 0.2, 0.2, 0.4))


def test_rectangles_rotate_around_their_upper_left_corner():
    value = dict(RECTANGLE, x=50, y=50, width=20, height=10, rotation=90)  # 40 x 10 pixels
    parsed = parse(task(result(value)))
    [rotated] = parsed.images[0].objects
    assert not rotated.relative
    assert box_around(rotated.segmentation) == pytest.approx((90, 50, 10, 40))
    assert [fault.what for fault in parsed.faults] == [
        'rotated boxes, replaced by the upright rectangle around them'
    ]


def test_shape_and_label_with_the_same_id_are_one_object():
    shape = {key: value for key, value in RECTANGLE.items() if key != 'rectanglelabels'}
    results = result(shape, 'rectangle'), result(dict(shape, labels=['car']), 'labels')
    [found] = objects(task(*results))
    assert found.name == 'car'


def test_keypoint_with_any_label_is_left_out_and_reported():
    point = dict(x=1, y=2, width=0.5, labels=['a'])
    parsed = parse(task(result(RECTANGLE), dict(result(point, 'labels'), id='k')))
    assert len(parsed.images[0].objects) == 1
    assert [fault.what for fault in parsed.faults] == ['objects without a box left out']


def test_region_with_two_labels_is_two_objects():
    value = dict(RECTANGLE, rectanglelabels=['car', 'red'])
    assert [found.name for found in objects(task(result(value)))] == ['car', 'red']


def test_omitted_annotations_objects_and_images_are_reported():
    ground_truth = dict(
        result=[result(dict(RECTANGLE, rectanglelabels=['truth']))], ground_truth=True
    )
    cancelled = dict(result=[result(RECTANGLE)], was_cancelled=True)
    several = task(result(RECTANGLE), image='a.jpg')
    several['annotations'] += [ground_truth, cancelled]
    brush = dict(format='rle', rle=[1, 2], brushlabels=['a'])
    point = dict(x=1, y=2, width=0.5, keypointlabels=['a'])
    parsed = parse(
        several,
        task(result(brush, 'brushlabels'), result(point, 'keypointlabels'), image='b.jpg'),
        dict(id=3, data=dict(image='c.jpg'), annotations=[]),
    )
    names = [[found.name for found in image.objects] for image in parsed.images]
    assert names == [['truth'], []]
    assert [fault.what for fault in parsed.faults] == [
        'annotations left out after the first of their image',
        *['objects without a box left out'] * 2,
        'images without an annotation left out',
    ]


def test_objects_on_rotated_images_become_faults():
    row = dict(result(RECTANGLE), image_rotation=90)
    [fault] = parse(task(row)).faults
    assert 'rotated' in fault.what
    assert fault.remedy


def test_other_lists_are_rejected():
    for content in ([], {}, [1], [dict(image='a.jpg', annotations=[])], [dict(data=1)]):
        assert not is_label_studio(content, FILE)
    assert not is_label_studio([task(result(dict(choices=['a']), 'choices'))], FILE)


@pytest.mark.parametrize('local', ['/data/local-files/?d=set/{}', '/data/upload/3/0123abcd-{}'])
@pytest.mark.parametrize('write', [lambda value, image: task(result(value), image=image), minimal])
def test_boxes_are_read_from_a_folder(tmp_path, local, write):
    names = [f'{i}.jpg' for i in range(8)]
    Scene(tmp_path).images(*(f'images/{name}' for name in names), size=(200, 100))
    rows = [
        write(
            dict(RECTANGLE, rectanglelabels=['bus' if i % 2 else 'car']), image=local.format(name)
        )
        for i, name in enumerate(names)
    ]
    (tmp_path / 'export.json').write_text(json.dumps(rows))
    data = anyfolder.read(tmp_path, task='detection')
    assert data.format == 'Label Studio'
    assert data.classes == ('bus', 'car')
    for image in [*data.splits['train'], *data.splits['val']]:
        [instance] = image.objects
        assert instance.label == ('bus' if int(image.path.stem) % 2 else 'car')
        assert instance.box == pytest.approx((20, 25, 100, 20))


@pytest.mark.parametrize('is_minimal', [False, True])
def test_choices_are_classes_of_images(tmp_path, is_minimal):
    Scene(tmp_path).images(*(f'images/{i}.jpg' for i in range(12)))
    rows = []
    for i in range(12):
        name, image = ('sea', 'street')[i % 2], f'/data/upload/1/0123abcd-{i}.jpg'
        if is_minimal:
            row = dict(image=image, id=i, choice=name, annotator=1, annotation_id=i)
        else:
            row = task(result(dict(choices=[name]), 'choices'), image=image)
        rows.append(row)
    (tmp_path / 'export.json').write_text(json.dumps(rows))
    data = anyfolder.read(tmp_path, task='classification')
    assert data.classes == ('sea', 'street')
    labels = {image.path.stem: image.labels for part in data.splits.values() for image in part}
    assert labels == {f'{i}': (('sea', 'street')[i % 2],) for i in range(12)}
