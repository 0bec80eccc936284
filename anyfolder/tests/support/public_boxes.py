"""Miniatures of public data sets with boxes, in the folders of their unpacked downloads.

They include some further files of a download, which the readers must ignore.
"""

import json
from typing import Any

import numpy as np
from foreign_data import voc_xml
from public_scene import SIZE, PublicDataSet, Scene

BIRDS = '001.Black_footed_Albatross', '002.Laysan_Albatross'
CARS = 'AM General Hummer SUV 2000', 'Ram C-V Cargo Van'
CATS = 'cat', 'dog'
DRONES = 'pedestrian', 'car'
OPEN_IMAGES_BOXES = dict(Car=(5, 6, 20, 12), Tortoise=(0, 15, 10, 15))
BOX, CORNERS = [5, 6, 20, 10], [5, 6, 25, 16]  # left, top, width, height; left, top, right, bottom


def visdrone(scene: Scene) -> None:
    # left, top, width, height, score, class, truncation and occlusion: a car, an ignored region,
    # a pedestrian, and one of 'others': two ignored objects in each image
    rows = '5,6,20,10,1,4,0,0', '1,2,10,9,0,0,0,0,', '20,15,8,9,1,1,0,1', '3,3,9,8,0,11,0,0'
    for split, count in (('train', 4), ('val', 2), ('test-dev', 2), ('test-challenge', 1)):
        for i in range(count):
            folder = f'VisDrone2019-DET-{split}'
            scene.images(f'{folder}/images/{split}_{i}.jpg')
            if split != 'test-challenge':
                scene.text(f'{folder}/annotations/{split}_{i}.txt', *rows)


def kitti(scene: Scene) -> None:
    # class, truncation, occlusion, angle, left, top, right, bottom, and seven numbers in 3D
    for i in range(6):
        scene.images(f'training/image_2/{i:06}.png')
        scene.text(
            f'training/label_2/{i:06}.txt',
            'Car 0.00 0 -1.58 5.00 6.00 25.00 16.00 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59',
            'Pedestrian 0.00 0 -0.20 30.50 5.00 36.50 25.00 1.89 0.48 1.20 1.84 1.47 8.41 0.01',
            'DontCare -1 -1 -10 1.00 20.00 9.00 29.00 -1 -1 -1 -1000 -1000 -1000 -10',
        )
    scene.images('testing/image_2/000000.png', 'testing/image_2/000001.png')


def cub(scene: Scene) -> None:
    scene.text('attributes.txt', '1 has_bill_shape::curved')
    rows = [(n, bird, f'{bird}/{bird[4:]}_{n:04}.jpg') for n, bird in enumerate(BIRDS * 5, 1)]
    folder = 'CUB_200_2011'
    scene.images(*(f'{folder}/images/{name}' for _, _, name in rows))
    scene.text(f'{folder}/images.txt', *(f'{n} {name}' for n, _, name in rows))
    scene.text(f'{folder}/classes.txt', *(f'{n} {bird}' for n, bird in enumerate(BIRDS, 1)))
    labels = (f'{n} {BIRDS.index(bird) + 1}' for n, bird, _ in rows)
    scene.text(f'{folder}/image_class_labels.txt', *labels)
    scene.text(f'{folder}/train_test_split.txt', *(f'{n} {int(n < 8)}' for n, _, _ in rows))
    scene.text(f'{folder}/bounding_boxes.txt', *(f'{n} {n}.0 5.0 20.0 15.0' for n, _, _ in rows))
    scene.text(f'{folder}/parts/parts.txt', '1 back')


def wider_face(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2), ('test', 1)):
        lines = []
        for i in range(count):
            name = f'0--Parade/{i}_Parade_{split}_{i}.jpg'
            scene.images(f'WIDER_{split}/images/{name}')
            if i == 1:  # no faces, and a row of zeros
                lines += [name, '0', '0 0 0 0 0 0 0 0 0 0 ']
            else:  # left, top, width, height, blur, expression, illumination, invalid, and two more
                lines += [name, '2', '5 6 20 10 0 0 0 0 0 0 ', '1 2 8 9 2 0 0 1 2 0 ']
        if split != 'test':
            scene.text(f'wider_face_split/wider_face_{split}_bbx_gt.txt', *lines)
    scene.text('wider_face_split/wider_face_test_filelist.txt', '0--Parade/0_Parade_test_0.jpg')


def coco_content(names: list[str], key: str = 'file_name', prefix: str = '') -> dict[str, Any]:
    """COCO with a cat in each image, a crowd of dogs in the first, and a dog in the second.

    Args:
        names: the names of the images.
        key: the field of an image that has its name.
        prefix: what precedes the name in that field.
    """
    images = [
        {'id': i, key: prefix + name, 'width': 40, 'height': 30} for i, name in enumerate(names, 1)
    ]
    outline = [[5, 6, 25, 6, 25, 16, 5, 16]]
    common = dict(area=200, iscrowd=0, segmentation=outline)
    annotations = [
        dict(id=i, image_id=i, category_id=17, bbox=BOX, **common) for i in range(1, len(names) + 1)
    ]
    left_columns = dict(size=[30, 40], counts=[0, 30 * 4, 30 * 36])
    annotations.append(
        dict(
            id=99,
            image_id=1,
            category_id=18,
            bbox=[0, 0, 4, 30],
            area=120,
            iscrowd=1,
            segmentation=left_columns,
        )
    )
    annotations.append(dict(annotations[0], id=100, image_id=2, category_id=18, bbox=BOX))
    categories = [dict(id=17, name='cat'), dict(id=18, name='dog'), dict(id=19, name='horse')]
    return dict(images=images, annotations=annotations, categories=categories)


def coco(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        names = [f'{split}{i:011}.jpg' for i in range(count)]
        scene.images(*(f'{split}2017/{name}' for name in names))
        scene.text(f'annotations/instances_{split}2017.json', json.dumps(coco_content(names)))
        scene.text(f'annotations/captions_{split}2017.json', '{"images": [], "annotations": []}')
        scene.text(
            f'annotations/person_keypoints_{split}2017.json', json.dumps(coco_content(names))
        )
    scene.images('test2017/000000000001.jpg')


def coco_panoptic(scene: Scene) -> None:
    categories = [dict(id=1, name='cat', isthing=1), dict(id=2, name='sky', isthing=0)]
    for split, count in (('train', 4), ('val', 2)):
        content: dict[str, Any] = dict(images=[], annotations=[], categories=categories)
        for i in range(count):
            name = f'{split}{i:03}'
            scene.images(f'{split}2017/{name}.jpg')
            colors = np.full((30, 40, 3), (7, 1, 0), np.uint8)  # red, green and blue of 263
            colors[6:16, 5:25] = 9, 0, 0
            scene.array(f'annotations/panoptic_{split}2017/{name}.png', colors)
            segments = [
                dict(id=263, category_id=2, iscrowd=0),
                dict(id=9, category_id=1, iscrowd=0),
            ]
            content['images'].append(dict(id=i, file_name=f'{name}.jpg', width=40, height=30))
            content['annotations'].append(
                dict(image_id=i, file_name=f'{name}.png', segments_info=segments)
            )
        scene.text(f'annotations/panoptic_{split}2017.json', json.dumps(content))


def pascal_voc(scene: Scene) -> None:
    """2007 with a test split, and 2012 without; two of three images of each split have masks."""
    for year, splits in (('2007', ('train', 'val', 'test')), ('2012', ('train', 'val'))):
        folder = f'VOCdevkit/VOC{year}'
        for k, split in enumerate(splits):
            names = [f'{year}_{k}{i:05}' for i in range(3)]
            for i, name in enumerate(names):
                scene.images(f'{folder}/JPEGImages/{name}.jpg')
                class_name = ('cat', 'aeroplane')[i % 2]
                xml = voc_xml(f'{name}.jpg', [(class_name, (5, 6, 25, 16))], SIZE)
                scene.text(f'{folder}/Annotations/{name}.xml', xml)
                mask = np.zeros((30, 40), np.uint8)
                mask[6:16, 5:25] = 8 if class_name == 'cat' else 1
                mask[5] = 255
                if i < 2:
                    scene.array(f'{folder}/SegmentationClass/{name}.png', mask)
            scene.text(f'{folder}/ImageSets/Main/{split}.txt', *names)
            scene.text(f'{folder}/ImageSets/Segmentation/{split}.txt', *names[:2])
        scene.text(f'{folder}/ImageSets/Main/aeroplane_trainval.txt', '2007_000000 -1')


def deepfashion2(scene: Scene) -> None:
    item = dict(
        category_name='trousers',
        category_id=8,
        bounding_box=CORNERS,
        segmentation=[[5, 6, 25, 6, 25, 16, 5, 16]],
        landmarks=[0] * 6,
        style=1,
    )
    vest = dict(item, category_name='vest', category_id=5, bounding_box=[1, 2, 11, 29])
    vest['segmentation'] = [[1, 2, 11, 2, 11, 29, 1, 29]]
    for split, count in (('train', 4), ('validation', 2)):
        for i in range(1, count + 1):
            scene.images(f'{split}/image/{i:06}.jpg')
            content = dict(source='shop', pair_id=i, item1=item, item2=vest)
            scene.text(f'{split}/annos/{i:06}.json', json.dumps(content))
    scene.images('test/image/000001.jpg')


def objects365(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        names = [f'objects365_v2_{split}{i:05}.jpg' for i in range(count)]
        scene.images(*(f'{split}/patch{i % 2}/{name}' for i, name in enumerate(names)))
        # The file of the download lists the images in another folder, too.
        listed = [f'images/v2/patch{i % 2}/{name}' for i, name in enumerate(names)]
        content = coco_content(listed)
        for annotation in content['annotations']:
            annotation.pop('segmentation')
        scene.text(f'zhiyuan_objv2_{split}.json', json.dumps(content))


def lvis(scene: Scene) -> None:
    """Four training and two validation images; one of the latter is in COCO's training folder."""
    names = [f'{i:012}.jpg' for i in range(1, 7)]
    folders = ['train2017'] * 5 + ['val2017']
    listed = [f'{folder}/{name}' for folder, name in zip(folders, names, strict=True)]
    scene.images(*listed)
    url = 'http://images.cocodataset.org/'
    for split, chosen in (('train', listed[:4]), ('val', listed[4:])):
        content = coco_content(chosen, key='coco_url', prefix=url)
        scene.text(f'annotations/lvis_v1_{split}.json', json.dumps(content))


def crowdhuman(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        lines = []
        for i in range(count):
            name = f'27327{i},c9db{split}'
            scene.images(f'Images/{name}.jpg')
            # boxes of the full body, of its visible part and of the head
            person = dict(tag='person', fbox=BOX, vbox=BOX, hbox=[6, 6, 5, 5], extra=dict(box_id=0))
            boxes = [
                person,
                dict(person, fbox=[-2, 1, 9, 12]),
                dict(person, fbox=[10, 2, 9, 12], extra=dict(ignore=1)),
                dict(tag='mask', fbox=[20, 2, 9, 12], extra=dict(ignore=1)),
            ]
            lines.append(json.dumps(dict(ID=name, gtboxes=boxes)))
        scene.text(f'annotation_{split}.odgt', *lines)


def taco(scene: Scene) -> None:
    names = [f'batch_{1 + i // 3}/{i:06}.jpg' for i in range(6)]
    scene.images(*(f'data/{name}' for name in names))
    for name in ('annotations', 'annotations_unofficial'):
        scene.text(f'data/{name}.json', json.dumps(coco_content(names)))
    scene.text('README.md', 'TACO')
    scene.text('download.py', 'import os')


def xview(scene: Scene) -> None:
    features = []
    for i in range(5):
        scene.images(f'train_images/{i}.tif')
        # a small car, a building, and a number without a class
        for code, box in ((18, '5,6,25,16'), (73, '1,2,11,29'), (75, '30,2,39,9')):
            properties = dict(image_id=f'{i}.tif', bounds_imcoords=box, type_id=code, cat_id='')
            geometry = dict(type='Polygon')
            features.append(dict(type='Feature', properties=properties, geometry=geometry))
    of_missing_image = dict(image_id='1395.tif', bounds_imcoords='1,2,3,4', type_id=18)
    features.append(dict(type='Feature', properties=of_missing_image, geometry={}))
    content = dict(type='FeatureCollection', features=features)
    scene.text('xView_train.geojson', json.dumps(content))
    scene.images('val_images/77.tif')


def dota(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        for i in range(count):
            scene.images(f'{split}/images/P{i:04}{split}.png')
            scene.text(
                f'{split}/labelTxt/P{i:04}{split}.txt',
                'imagesource:GoogleEarth',
                'gsd:0.146343590398',
                '5.0 6.0 25.0 6.0 25.0 16.0 5.0 16.0 plane 0',  # corners, class, difficult
                '20.0 2.0 30.0 12.0 20.0 22.0 10.0 12.0 small-vehicle 0',
                '1.0 1.0 9.0 1.0 9.0 9.0 1.0 9.0 plane 1',
            )


OPEN_IMAGES_HEADER = (
    'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf'
)


def open_images_rows(split: str, count: int) -> list[str]:
    """The header, and for each image the rows of a car, a group of tortoises and a tortoise."""
    rows = []
    for i in range(count):
        image = f'{split[:2]}{i:014}'
        rows += [
            f'{image},xclick,/m/0k4j,1,0.125,0.625,0.2,0.6,0,0,0',
            f'{image},xclick,/m/011k07,1,0.5,1,0.5,1,0,0,1',
            f'{image},xclick,/m/011k07,1,0,0.25,0.5,1,0,0,0',
        ]
    return [OPEN_IMAGES_HEADER, *rows]


def open_images(scene: Scene) -> None:
    for split, count in (('train', 4), ('validation', 2), ('test', 1)):
        scene.images(*(f'{split}/{split[:2]}{i:014}.jpg' for i in range(count)))
        prefix = 'oidv6-' if split == 'train' else ''
        scene.text(f'{prefix}{split}-annotations-bbox.csv', *open_images_rows(split, count))
    scene.text(
        'class-descriptions-boxable.csv', '/m/011k07,Tortoise', '/m/0k4j,Car', '/m/01x,"Hat, red"'
    )


def open_images_fiftyone(scene: Scene) -> None:
    for split, count in (('train', 4), ('validation', 2), ('test', 1)):
        folder = f'open-images-v7/{split}'
        scene.images(*(f'{folder}/data/{split[:2]}{i:014}.jpg' for i in range(count)))
        scene.text(f'{folder}/labels/detections.csv', *open_images_rows(split, count))
        scene.text(f'{folder}/labels/classifications.csv', 'ImageID,Source,LabelName,Confidence')
        scene.text(f'{folder}/metadata/classes.csv', '/m/011k07,Tortoise', '/m/0k4j,Car')
        scene.text(f'{folder}/metadata/hierarchy.json', '{}')


def sku110k(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2), ('test', 1)):
        names = [f'{split}_{i}.jpg' for i in range(count)]
        scene.images(*(f'SKU110K_fixed/images/{name}' for name in names))
        # image, left, top, right, bottom, class, width and height of the image
        rows = (f'{name},5,6,25,16,object,40,30' for name in names)
        scene.text(f'SKU110K_fixed/annotations/annotations_{split}.csv', *rows)


def bdd100k(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        frames = []
        for i in range(count):
            name = f'b1c66a42-{split}{i}.jpg'
            scene.images(f'bdd100k/images/100k/{split}/{name}')
            corners = dict(zip(('x1', 'y1', 'x2', 'y2'), CORNERS, strict=True))
            labels = [
                dict(id=str(i), category='car', box2d=corners, attributes=dict(occluded=True)),
                dict(id='9', category='bus', box2d=dict(corners, x1=1.5)),
            ]
            frames.append(dict(name=name, labels=labels, attributes=dict(weather='clear')))
        scene.text(f'bdd100k/labels/det_20/det_{split}.json', json.dumps(frames))
    scene.images('bdd100k/images/100k/test/cabc30fc.jpg')


def penn_fudan(scene: Scene) -> None:
    for i in range(6):
        name = f'FudanPed{i:05}'
        scene.images(f'PennFudanPed/PNGImages/{name}.png')
        mask = np.zeros((30, 40), np.uint8)
        mask[6:16, 5:25], mask[2:29, 30:37] = 1, 2
        scene.array(f'PennFudanPed/PedMasks/{name}_mask.png', mask)
        scene.text(
            f'PennFudanPed/Annotation/{name}.txt', '# Compatible with PASCAL Annotation 1.00'
        )
    scene.text('PennFudanPed/added-object-list.txt', '')
    scene.text('PennFudanPed/readme.txt', 'PNGImages: All the database images')


def nuclei(scene: Scene, prefix: str = '') -> None:
    """The Data Science Bowl 2018, with two nuclei in each image, each in its own mask."""
    for i in range(6):
        folder = f'{prefix}{i:064x}'
        scene.images(f'{folder}/images/{i:064x}.png')
        for k, (left, top) in enumerate([(5, 6), (20 + i, 10)]):
            mask = np.zeros((30, 40), np.uint8)
            mask[top : top + 8, left : left + 10] = 255
            scene.array(f'{folder}/masks/{2 * i + k:064x}.png', mask)


def nuclei_next_to_others(scene: Scene) -> None:
    nuclei(scene, 'stage1_train/')
    scene.images(f'stage1_test/{9:064x}/images/{9:064x}.png')
    scene.text('stage1_train_labels.csv', 'ImageId,EncodedPixels', f'{0:064x},1 5 31 5')


def stanford_cars(scene: Scene) -> None:
    for split, count in (('train', 6), ('test', 2)):
        rows = []
        for i in range(count):
            scene.images(f'car_data/car_data/{split}/{CARS[i % 2]}/{i:05}.jpg')
            rows.append(f'{i:05}.jpg,6,7,26,17,{1 + i % 2}')
        scene.text(f'anno_{split}.csv', *rows)
    scene.text('names.csv', *CARS)


# In the order of PublicDataSet: layout, writer, task, classes, and the numbers of images.
PUBLIC_BOXES = [
    PublicDataSet(
        'VisDrone-DET', visdrone, 'detection', DRONES, (4, 2, 2),
        boxes=dict(car=(5, 6, 20, 10), pedestrian=(20, 15, 8, 9)), ignored=8,
        notes=('test-challenge has no labels',),
    ),
    PublicDataSet(
        'KITTI', kitti, 'detection', ('Car', 'Pedestrian'), (5, 1, 0), held_out=True,
        boxes=dict(Car=(5, 6, 20, 10), Pedestrian=(30.5, 5, 6, 20)), ignored=5,
        notes=('images of testing have no labels',),
    ),
    PublicDataSet(
        'CUB-200-2011', cub, 'detection', BIRDS, (6, 1, 3), held_out=True,
        boxes={BIRDS[0]: (1, 5, 20, 15), BIRDS[1]: (2, 5, 20, 15)},
    ),
    PublicDataSet(
        'WIDER_FACE', wider_face, 'detection', ('face',), (4, 2, 0),
        boxes=dict(face=(5, 6, 20, 10)), ignored=3, notes=('test images have no labels',),
    ),
    PublicDataSet(
        'COCO', coco, 'detection', CATS, (4, 2, 0), boxes=dict(cat=(5, 6, 20, 10)), ignored=1,
        notes=('images of test2017 have no labels',),
    ),
    PublicDataSet(
        'COCO', coco, 'instance', CATS, (4, 2, 0), boxes=dict(dog=(5, 6, 20, 10)), ignored=1
    ),
    PublicDataSet(
        'COCO-panoptic', coco_panoptic, 'panoptic', ('cat', 'sky'), (4, 2, 0),
        boxes=dict(cat=(5, 6, 20, 10)),
    ),
    PublicDataSet(
        'Pascal-VOC', pascal_voc, 'detection', ('aeroplane', 'cat'), (6, 6, 3),
        boxes=dict(cat=(5, 6, 20, 10)),
    ),
    PublicDataSet(
        'DeepFashion2', deepfashion2, 'detection', ('trousers', 'vest'), (4, 2, 0),
        boxes=dict(trousers=(5, 6, 20, 10)), notes=('Landmarks and pairs are left out',),
    ),
    PublicDataSet(
        'DeepFashion2', deepfashion2, 'instance', ('trousers', 'vest'), (4, 2, 0),
        boxes=dict(vest=(1, 2, 10, 27)),
    ),
    PublicDataSet(
        'Objects365', objects365, 'detection', CATS, (4, 2, 0), boxes=dict(cat=(5, 6, 20, 10)),
        ignored=1,
    ),
    PublicDataSet(
        'LVIS', lvis, 'instance', CATS, (4, 2, 0), boxes=dict(cat=(5, 6, 20, 10)), ignored=1,
        notes=('splits are those of LVIS',),
    ),
    PublicDataSet(
        'CrowdHuman', crowdhuman, 'detection', ('person',), (4, 2, 0),
        boxes=dict(person=(0, 1, 7, 12)), ignored=8, notes=('of whole bodies',),
    ),
    PublicDataSet(
        'TACO', taco, 'instance', CATS, (5, 1, 0), held_out=True, boxes=dict(cat=(5, 6, 20, 10)),
        ignored=1, notes=('annotations_unofficial.json is left out',),
    ),
    PublicDataSet(
        'xView', xview, 'detection', ('Small Car', 'Building'), (4, 1, 0), held_out=True,
        boxes={'Small Car': (5, 6, 20, 10)}, ignored=4, notes=('Objects of 75 and 82',),
    ),
    PublicDataSet(
        'DOTA', dota, 'detection', ('plane', 'small-vehicle'), (4, 2, 0),
        boxes={'plane': (5, 6, 20, 10), 'small-vehicle': (10, 2, 20, 20)}, ignored=4,
        notes=('upright rectangles',),
    ),
    PublicDataSet(
        'Open-Images', open_images, 'detection', ('Tortoise', 'Car'), (4, 2, 1),
        boxes=OPEN_IMAGES_BOXES, ignored=4, notes=('Boxes of groups',),
    ),
    PublicDataSet(
        'Open-Images-FiftyOne', open_images_fiftyone, 'detection', ('Tortoise', 'Car'), (4, 2, 1),
        boxes=OPEN_IMAGES_BOXES, ignored=4,
    ),
    PublicDataSet(
        'SKU-110K', sku110k, 'detection', ('object',), (4, 2, 1), boxes=dict(object=(5, 6, 20, 10))
    ),
    PublicDataSet(
        'BDD100K', bdd100k, 'detection', ('bus', 'car'), (4, 2, 0), boxes=dict(car=(5, 6, 20, 10)),
        notes=('lanes are left out',),
    ),
    PublicDataSet(
        'Penn-Fudan', penn_fudan, 'instance', ('pedestrian',), (5, 1, 0), held_out=True,
        boxes=dict(pedestrian=(5, 6, 20, 10)), notes=('Each value of a mask is a pedestrian',),
    ),
    PublicDataSet(
        'Penn-Fudan', penn_fudan, 'detection', ('pedestrian',), (5, 1, 0), held_out=True,
        boxes=dict(pedestrian=(30, 2, 7, 27)),
    ),
    PublicDataSet(
        'Data-Science-Bowl-2018', nuclei, 'instance', ('nucleus',), (5, 1, 0), held_out=True,
        boxes=dict(nucleus=(5, 6, 10, 8)), notes=('Each mask is one nucleus',),
    ),
    PublicDataSet(
        'Data-Science-Bowl-2018', nuclei_next_to_others, 'detection', ('nucleus',), (5, 1, 0),
        held_out=True, boxes=dict(nucleus=(20, 10, 10, 8)), notes=('stage1_test',),
    ),
    PublicDataSet(
        'Stanford-Cars-folders', stanford_cars, 'detection', CARS, (5, 1, 2), held_out=True,
        boxes={CARS[0]: (5, 6, 20, 10)},
    ),
]  # fmt: skip
