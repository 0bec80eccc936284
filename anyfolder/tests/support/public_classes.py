"""Public data sets with classes of images, as their downloads unpack, with a few small images.

Downloads have more files than images and labels; some are written, too, and must be ignored.
"""

import json
from itertools import product

import numpy as np
from foreign_data import voc_xml
from public_boxes import BIRDS, CARS, cub, stanford_cars
from public_scene import SIZE, PublicDataSet, Scene

from anyfolder.layouts.layout import KNOWN_FOLDER, read_layouts


def ham10000(scene: Scene) -> None:
    rows = []
    for i in range(24):
        name = f'ISIC_{24000 + i:07}'
        scene.images(f'HAM10000_images_part_{1 + i % 2}/{name}.jpg')
        class_name = ('nv', 'mel')[i // 2 % 2]  # two images of each lesion
        rows.append(f'HAM_{i // 2:07},{name},{class_name},histo,80.0,male,scalp')
    header = 'lesion_id,image_id,dx,dx_type,age,sex,localization'
    scene.text('HAM10000_metadata.csv', header, *rows)
    scene.text('hmnist_28_28_L.csv', 'pixel0000,label', '1,2')  # not the labels of the images


def dtd(scene: Scene) -> None:
    classes = 'banded', 'dotted', 'lined'
    names = [f'{class_name}/{class_name}_{i:04}.jpg' for class_name in classes for i in range(6)]
    scene.images(*(f'dtd/images/{name}' for name in names))
    for number in range(1, 11):  # DTD has ten official splits
        for k, split in enumerate(('train', 'val', 'test')):
            listed = (name for i, name in enumerate(names) if (i + number) % 3 == k)
            scene.text(f'dtd/labels/{split}{number}.txt', *listed)
    joint = (f'{name} {name.partition("/")[0]} ' for name in names)
    scene.text('dtd/labels/labels_joint_anno.txt', *joint)


def caltech(scene: Scene) -> None:
    classes = 'BACKGROUND_Google', 'accordion', 'airplanes'
    for class_name in classes:
        folder = f'caltech-101/101_ObjectCategories/{class_name}'
        scene.images(*(f'{folder}/image_{i:04}.jpg' for i in range(1, 5)))
    # outlines and code, which are left out
    scene.text('caltech-101/Annotations/accordion/annotation_0001.mat', 'MATLAB')
    scene.text('caltech-101/show_annotation.m', '%')


def food(scene: Scene) -> None:
    classes = 'apple_pie', 'baby_back_ribs'
    for class_name in classes:
        scene.images(*(f'food-101/images/{class_name}/{i}.jpg' for i in range(5)))
    for split, numbers in (('train', range(4)), ('test', range(4, 5))):
        names = [f'{class_name}/{i}' for class_name in classes for i in numbers]
        scene.text(f'food-101/meta/{split}.txt', *names)
        by_class = {class_name: [f'{class_name}/{i}' for i in numbers] for class_name in classes}
        scene.text(f'food-101/meta/{split}.json', json.dumps(by_class))
    scene.text('food-101/meta/classes.txt', *classes)
    scene.text('food-101/meta/labels.txt', 'Apple pie', 'Baby back ribs')


def plant_village(scene: Scene) -> None:
    for folder in ('color', 'grayscale', 'segmented'):
        for class_name in ('Apple___Apple_scab', 'Apple___healthy'):
            names = (f'{i:02}a___FREC_Scab {i}.JPG' for i in range(4))
            scene.images(*(f'plantvillage dataset/{folder}/{class_name}/{name}' for name in names))


def eurosat(scene: Scene) -> None:
    for class_name in ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake'):
        scene.images(*(f'2750/{class_name}/{class_name}_{i}.jpg' for i in range(3)))


def gtsrb(scene: Scene) -> None:
    header = 'Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId'
    for class_name in ('00000', '00001'):
        folder, rows = f'GTSRB/Final_Training/Images/{class_name}', []
        for track in range(3):  # a track has the photographs of one sign
            for i in range(2):
                rows.append(f'{track:05}_{i:05}.ppm;40;30;5;5;24;25;{int(class_name)}')
                scene.images(f'{folder}/{track:05}_{i:05}.ppm')
        scene.text(f'{folder}/GT-{class_name}.csv', header, *rows)
    scene.images(*(f'GTSRB/Final_Test/Images/{i:05}.ppm' for i in range(2)))
    rows = (f'{i:05}.ppm;40;30;5;5;24;25;{i}' for i in range(2))
    scene.text('GTSRB/GT-final_test.csv', header, *rows)
    scene.text('GTSRB/Readme.txt', 'Content')


def gtsrb_tables(scene: Scene) -> None:
    header = 'Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path'
    photographs = [*product(range(2), range(3), range(2))]  # class, track and photograph
    for split in ('Train', 'Test'):
        rows = []
        for number, (class_id, track, i) in enumerate(photographs):
            name = f'Train/{class_id}/{class_id:05}_{track:05}_{i:05}.png'
            if split == 'Test':
                name = f'Test/{number:05}.png'
            scene.images(name)
            rows.append(f'40,30,5,5,24,25,{class_id},{name}')
        scene.text(f'{split}.csv', header, *rows)
    scene.images('Meta/0.png', 'Meta/1.png')
    scene.text('Meta.csv', 'Path,ClassId,ShapeId,ColorId,SignId', 'Meta/0.png,0,1,0,3.29')


def tiny_imagenet(scene: Scene) -> None:
    folder, classes = 'tiny-imagenet-200', ('n01443537', 'n01629819')
    lines = []
    for k, class_name in enumerate(classes):
        names = [f'{class_name}_{i}.JPEG' for i in range(3)]
        scene.images(*(f'{folder}/train/{class_name}/images/{name}' for name in names))
        boxes = (f'{name}\t0\t10\t20\t25' for name in names)
        scene.text(f'{folder}/train/{class_name}/{class_name}_boxes.txt', *boxes)
        scene.images(f'{folder}/val/images/val_{k}.JPEG')
        lines.append(f'val_{k}.JPEG\t{class_name}\t0\t5\t20\t25')
    scene.text(f'{folder}/val/val_annotations.txt', *lines)
    scene.images(f'{folder}/test/images/test_0.JPEG')
    scene.text(f'{folder}/wnids.txt', *classes)
    scene.text(
        f'{folder}/words.txt', 'n01443537\tgoldfish, Carassius auratus', 'n01629819\tsalamander'
    )


ATTRIBUTES = read_layouts(KNOWN_FOLDER / 'CelebA.yaml')[0].classes.classes
# The attributes of four faces, which repeat.
FACES = [{'Bald', 'Male'}, {'Smiling'}, set(), {'Male', 'Smiling', 'Bald'}]
PARTITIONS = 0, 0, 0, 0, 0, 1, 2, 2  # of the eight faces: 0 to train, 1 to validate, 2 to test


def celeba(scene: Scene) -> None:
    names = [f'{i:06}.jpg' for i in range(1, 9)]
    scene.images(*(f'celeba/img_align_celeba/{name}' for name in names))
    rows = [
        f'{name} ' + ' '.join(f'{1 if key in FACES[i % 4] else -1:2}' for key in ATTRIBUTES)
        for i, name in enumerate(names)
    ]
    scene.text('celeba/list_attr_celeba.txt', '8', ' '.join(ATTRIBUTES) + ' ', *rows)
    parts = (f'{name} {part}' for name, part in zip(names, PARTITIONS, strict=True))
    scene.text('celeba/list_eval_partition.txt', *parts)
    scene.text('celeba/identity_CelebA.txt', *(f'{name} {i}' for i, name in enumerate(names)))
    boxes = (f'{name} 5 5 20 20' for name in names)
    scene.text('celeba/list_bbox_celeba.txt', '8', 'image_id x_1 y_1 width height', *boxes)


def celeba_tables(scene: Scene) -> None:
    names = [f'{i:06}.jpg' for i in range(1, 9)]
    scene.images(*(f'img_align_celeba/img_align_celeba/{name}' for name in names))
    rows = [
        f'{name},' + ','.join('1' if key in FACES[i % 4] else '-1' for key in ATTRIBUTES)
        for i, name in enumerate(names)
    ]
    scene.text('list_attr_celeba.csv', f'image_id,{",".join(ATTRIBUTES)}', *rows)
    parts = (f'{name},{part}' for name, part in zip(names, PARTITIONS, strict=True))
    scene.text('list_eval_partition.csv', 'image_id,partition', *parts)
    scene.text('list_bbox_celeba.csv', 'image_id,x_1,y_1,width,height', '000001.jpg,95,71,226,313')


def inaturalist(scene: Scene, year: int = 2018) -> None:
    """The release of 2018 or 2021."""
    categories = [dict(id=i, name=f'species {i}', supercategory='Aves') for i in range(3)]
    for split, count in (('train', 6), ('val', 3)):
        images, annotations = [], []
        for i in range(count):
            folder = f'{split}/{i % 3:05}_Animalia_{i % 3}'
            if year == 2018:
                folder = f'train_val2018/Aves/{i % 3}'
            name = f'{folder}/{split}{i:08x}.jpg'
            scene.images(name)
            images.append(dict(id=i, file_name=name, width=40, height=30, license=3))
            annotations.append(dict(id=i, image_id=i, category_id=i % 3))
        content = dict(images=images, annotations=annotations, categories=categories)
        name = f'{split}2018.json' if year == 2018 else f'{split}.json'
        scene.text(name, json.dumps(content))


def inaturalist_2021(scene: Scene) -> None:
    inaturalist(scene, year=2021)


def oxford_pets(scene: Scene) -> None:
    lines: dict[str, list[str]] = dict(trainval=[], test=[])
    for k, class_name in enumerate(('Abyssinian', 'american_bulldog')):
        for i in range(1, 8):
            name = f'{class_name}_{i}'
            scene.images(f'images/{name}.jpg')
            trimap = np.full((30, 40), 2, np.uint8)  # 1: foreground, 2: background, 3: border
            trimap[6:16, 5:25], trimap[10:12, 10:12] = 3, 1
            scene.array(f'annotations/trimaps/{name}.png', trimap)
            lines['trainval' if i < 6 else 'test'].append(f'{name} {1 + k} {1 + k} 1')
            if i < 4:  # only some images have the box of the head
                xml = voc_xml(f'{name}.jpg', [(('cat', 'dog')[k], (5, 6, 25, 16))], SIZE)
                scene.text(f'annotations/xmls/{name}.xml', xml)
    for name, rows in lines.items():
        scene.text(f'annotations/{name}.txt', *rows)
    scene.text('annotations/list.txt', '#Image CLASS-ID SPECIES BREED ID', *lines['trainval'])
    scene.text('images/Abyssinian_100.mat', 'MATLAB')


ISIC_CLASSES = 'MEL', 'NV', 'BCC', 'AK', 'BKL', 'DF', 'VASC', 'SCC', 'UNK'


def isic_2019(scene: Scene) -> None:
    rows, metadata = [], []
    for i in range(24):
        name, class_name = f'ISIC_{i:07}', ('NV', 'MEL')[i // 2 % 2]  # two images of each lesion
        scene.images(f'ISIC_2019_Training_Input/{name}.jpg')
        cells = ','.join(f'{float(column == class_name)}' for column in ISIC_CLASSES)
        rows.append(f'{name},{cells}')
        metadata.append(f'{name},55.0,anterior torso,HAM_{i // 2},female')
    scene.text('ISIC_2019_Training_GroundTruth.csv', f'image,{",".join(ISIC_CLASSES)}', *rows)
    header = 'image,age_approx,anatom_site_general,lesion_id,sex'
    scene.text('ISIC_2019_Training_Metadata.csv', header, *metadata)


def isic_2018(scene: Scene) -> None:
    classes = 'MEL', 'NV', 'BCC', 'AKIEC', 'BKL', 'DF', 'VASC'
    for split, count in (('Training', 6), ('Validation', 2)):
        rows = []
        for i in range(count):
            name, class_name = f'ISIC_{split[0]}{i:06}', ('NV', 'MEL')[i % 2]
            scene.images(f'ISIC2018_Task3_{split}_Input/{name}.jpg')
            cells = ','.join(f'{float(column == class_name)}' for column in classes)
            rows.append(f'{name},{cells}')
        folder = f'ISIC2018_Task3_{split}_GroundTruth'
        scene.text(f'{folder}/{folder}.csv', f'image,{",".join(classes)}', *rows)
    scene.text(
        'ISIC2018_Task3_Training_LesionGroupings.csv',
        'image,lesion_id,diagnosis_confirm_type',
        'ISIC_T000000,HAM_0,histopathology',
    )


def chest_xray(scene: Scene) -> None:
    names = [f'{i // 2:08}_{i % 2:03}.png' for i in range(12)]  # two of each patient
    scene.images(*(f'images_{1 + i // 6:03}/images/{name}' for i, name in enumerate(names)))
    diagnoses = 'No Finding', 'Cardiomegaly|Effusion', 'Effusion'
    rows = (f'{name},{diagnoses[i % 3]},{i % 2},{i // 2},58,M,PA' for i, name in enumerate(names))
    header = 'Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View'
    scene.text('Data_Entry_2017.csv', header, *rows)
    scene.text('train_val_list.txt', *names[:10])
    scene.text('test_list.txt', *names[10:])


# Layout, writer, task, classes, numbers of training, validation and test images, and the rest.
PUBLIC_CLASSES = [
    PublicDataSet('CUB-200-2011', cub, 'classification', BIRDS, (5, 2, 3), held_out=True),
    PublicDataSet(
        'HAM10000', ham10000, 'classification', ('mel', 'nv'), (20, 4, 0), held_out=True,
        labels={'ISIC_0024000.jpg': 'nv'}, notes=('one lesion stay in one split',),
    ),
    PublicDataSet(
        'DTD', dtd, 'classification', ('banded', 'dotted', 'lined'), (6, 6, 6),
        notes=('train: labels/train2.txt',),
    ),
    PublicDataSet(
        'Caltech-101', caltech, 'classification', ('accordion', 'airplanes'), (6, 2, 0),
        held_out=True, notes=('BACKGROUND_Google',),
    ),
    PublicDataSet(
        'Food-101', food, 'classification', ('apple_pie', 'baby_back_ribs'), (6, 2, 2),
        held_out=True, labels={'apple_pie/0.jpg': 'apple_pie'},
    ),
    PublicDataSet(
        'PlantVillage', plant_village, 'classification', ('Apple___Apple_scab', 'Apple___healthy'),
        (6, 2, 0), held_out=True, notes=('same images in gray',),
    ),
    PublicDataSet(
        'EuroSAT', eurosat, 'classification',
        ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake'), (8, 4, 0),
        held_out=True, notes=('a tenth of each class is held out',),
    ),
    PublicDataSet(
        'GTSRB', gtsrb, 'classification', ('0', '1'), (8, 4, 2), held_out=True,
        labels={'00001/00002_00001.ppm': '1', 'Final_Test/Images/00001.ppm': '1'},
        notes=('one sign stay in one split',),
    ),
    PublicDataSet(
        'GTSRB-tables', gtsrb_tables, 'classification', ('0', '1'), (8, 4, 12), held_out=True,
        labels={'Test/00011.png': '1'}, notes=('one sign stay in one split',),
    ),
    PublicDataSet(
        'Tiny-ImageNet', tiny_imagenet, 'classification', ('n01443537', 'n01629819'), (6, 2, 0),
        labels={'val_1.JPEG': 'n01629819'}, notes=('boxes are left out',),
    ),
    PublicDataSet(
        'CelebA', celeba, 'classification', ('Bald', 'Male', 'Smiling'), (5, 1, 2),
        labels={'000001.jpg': ('Bald', 'Male'), '000003.jpg': ()}, notes=('forty attributes',),
    ),
    PublicDataSet(
        'CelebA-tables', celeba_tables, 'classification', ('Bald', 'Male', 'Smiling'), (5, 1, 2),
        labels={'000001.jpg': ('Bald', 'Male')}, notes=('forty attributes',),
    ),
    PublicDataSet(
        'iNaturalist', inaturalist, 'classification', ('species 0', 'species 1', 'species 2'),
        (6, 3, 0), labels={'train00000004.jpg': 'species 1'},
    ),
    PublicDataSet(
        'iNaturalist-2021', inaturalist_2021, 'classification',
        ('species 0', 'species 1', 'species 2'), (6, 3, 0),
    ),
    PublicDataSet(
        'Oxford-IIIT-Pet', oxford_pets, 'classification', ('Abyssinian', 'american_bulldog'),
        (8, 2, 4), held_out=True, labels={'american_bulldog_1.jpg': 'american_bulldog'},
    ),
    PublicDataSet(
        'Oxford-IIIT-Pet', oxford_pets, 'detection', ('cat', 'dog'), (5, 1, 0), held_out=True,
        boxes=dict(cat=(5, 6, 20, 10)), notes=('boxes are of heads',),
    ),
    PublicDataSet(
        'Oxford-IIIT-Pet', oxford_pets, 'segmentation', ('foreground', 'background', 'border'),
        (9, 1, 4), held_out=True,
        labels={'Abyssinian_1.jpg': ('foreground', 'background', 'border')},
    ),
    PublicDataSet(
        'ISIC-2019', isic_2019, 'classification', ('MEL', 'NV'), (20, 4, 0), held_out=True,
        labels={'ISIC_0000002.jpg': 'MEL'}, notes=('one lesion stay in one split',),
    ),
    PublicDataSet(
        'ISIC-2018-Task3', isic_2018, 'classification', ('MEL', 'NV'), (6, 2, 0),
        labels={'ISIC_V000001.jpg': 'MEL'}, notes=('one lesion stay in one split',),
    ),
    PublicDataSet(
        'ChestX-ray14', chest_xray, 'classification', ('Cardiomegaly', 'Effusion', 'No Finding'),
        (8, 2, 2), held_out=True, labels={'00000000_001.png': ('Cardiomegaly', 'Effusion')},
        notes=('one patient stay in one split',),
    ),
    PublicDataSet(
        'Stanford-Cars-folders', stanford_cars, 'classification', CARS, (4, 2, 2), held_out=True,
    ),
]  # fmt: skip
