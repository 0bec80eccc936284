"""Public data sets with classes of images, as their downloads unpack, with a few small images."""

import json

import numpy as np
from foreign_data import voc_xml
from public_boxes import BIRDS, CARS, cub, stanford_cars
from public_scene import Public, Scene

from anyfolder.layouts.known_layouts import KNOWN_FOLDER
from anyfolder.layouts.layout import read_layouts


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


def caltech(scene: Scene) -> None:
    kinds = 'BACKGROUND_Google', 'accordion', 'airplanes'
    for kind in kinds:
        place = f'caltech-101/101_ObjectCategories/{kind}'
        scene.images(*(f'{place}/image_{i:04}.jpg' for i in range(1, 5)))
    scene.text('caltech-101/Annotations/accordion/annotation_0001.mat', 'MATLAB')
    scene.text('caltech-101/show_annotation.m', '%')


def food(scene: Scene) -> None:
    kinds = 'apple_pie', 'baby_back_ribs'
    for kind in kinds:
        scene.images(*(f'food-101/images/{kind}/{i}.jpg' for i in range(5)))
    for split, numbers in (('train', range(4)), ('test', range(4, 5))):
        names = [f'{kind}/{i}' for kind in kinds for i in numbers]
        scene.text(f'food-101/meta/{split}.txt', *names)
        by_kind = {kind: [f'{kind}/{i}' for i in numbers] for kind in kinds}
        scene.text(f'food-101/meta/{split}.json', json.dumps(by_kind))
    scene.text('food-101/meta/classes.txt', *kinds)
    scene.text('food-101/meta/labels.txt', 'Apple pie', 'Baby back ribs')


def plant_village(scene: Scene) -> None:
    for place in ('color', 'grayscale', 'segmented'):
        for kind in ('Apple___Apple_scab', 'Apple___healthy'):
            names = (f'{i:02}a___FREC_Scab {i}.JPG' for i in range(4))
            scene.images(*(f'plantvillage dataset/{place}/{kind}/{name}' for name in names))


def eurosat(scene: Scene) -> None:
    for kind in ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake'):
        scene.images(*(f'2750/{kind}/{kind}_{i}.jpg' for i in range(3)))


def gtsrb(scene: Scene) -> None:
    header = 'Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId'
    for kind in ('00000', '00001'):
        place, rows = f'GTSRB/Final_Training/Images/{kind}', []
        for track in range(3):
            for i in range(2):
                rows.append(f'{track:05}_{i:05}.ppm;40;30;5;5;24;25;{int(kind)}')
                scene.images(f'{place}/{track:05}_{i:05}.ppm')
        scene.text(f'{place}/GT-{kind}.csv', header, *rows)
    scene.images(*(f'GTSRB/Final_Test/Images/{i:05}.ppm' for i in range(2)))
    rows = (f'{i:05}.ppm;40;30;5;5;24;25;{i}' for i in range(2))
    scene.text('GTSRB/GT-final_test.csv', header, *rows)
    scene.text('GTSRB/Readme.txt', 'Content')


def gtsrb_tables(scene: Scene) -> None:
    header = 'Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path'
    for split in ('Train', 'Test'):
        rows = []
        for kind in range(2):
            for track in range(3):
                for i in range(2):
                    name = f'Train/{kind}/{kind:05}_{track:05}_{i:05}.png'
                    if split == 'Test':
                        name = f'Test/{kind * 6 + track * 2 + i:05}.png'
                    scene.images(name)
                    rows.append(f'40,30,5,5,24,25,{kind},{name}')
        scene.text(f'{split}.csv', header, *rows)
    scene.images('Meta/0.png', 'Meta/1.png')
    scene.text('Meta.csv', 'Path,ClassId,ShapeId,ColorId,SignId', 'Meta/0.png,0,1,0,3.29')


def tiny_imagenet(scene: Scene) -> None:
    place, kinds = 'tiny-imagenet-200', ('n01443537', 'n01629819')
    lines = []
    for k, kind in enumerate(kinds):
        names = [f'{kind}_{i}.JPEG' for i in range(3)]
        scene.images(*(f'{place}/train/{kind}/images/{name}' for name in names))
        scene.text(
            f'{place}/train/{kind}/{kind}_boxes.txt', *(f'{name}\t0\t10\t20\t25' for name in names)
        )
        scene.images(f'{place}/val/images/val_{k}.JPEG')
        lines.append(f'val_{k}.JPEG\t{kind}\t0\t5\t20\t25')
    scene.text(f'{place}/val/val_annotations.txt', *lines)
    scene.images(f'{place}/test/images/test_0.JPEG')
    scene.text(f'{place}/wnids.txt', *kinds)
    scene.text(
        f'{place}/words.txt', 'n01443537\tgoldfish, Carassius auratus', 'n01629819\tsalamander'
    )


ATTRIBUTES = read_layouts(KNOWN_FOLDER / 'CelebA.yaml')[0].classes.classes
HAS = [{'Bald', 'Male'}, {'Smiling'}, set(), {'Male', 'Smiling', 'Bald'}]  # of each face in turns


def celeba(scene: Scene) -> None:
    names = [f'{i:06}.jpg' for i in range(1, 9)]
    scene.images(*(f'celeba/img_align_celeba/{name}' for name in names))
    rows = [
        f'{name} ' + ' '.join(f'{1 if one in HAS[i % 4] else -1:2}' for one in ATTRIBUTES)
        for i, name in enumerate(names)
    ]
    scene.text('celeba/list_attr_celeba.txt', '8', ' '.join(ATTRIBUTES) + ' ', *rows)
    parts = (f'{name} {min(max(i - 4, 0), 2)}' for i, name in enumerate(names))
    scene.text('celeba/list_eval_partition.txt', *parts)
    scene.text('celeba/identity_CelebA.txt', *(f'{name} {i}' for i, name in enumerate(names)))
    boxes = (f'{name} 5 5 20 20' for name in names)
    scene.text('celeba/list_bbox_celeba.txt', '8', 'image_id x_1 y_1 width height', *boxes)


def celeba_tables(scene: Scene) -> None:
    names = [f'{i:06}.jpg' for i in range(1, 9)]
    scene.images(*(f'img_align_celeba/img_align_celeba/{name}' for name in names))
    rows = [
        f'{name},' + ','.join('1' if one in HAS[i % 4] else '-1' for one in ATTRIBUTES)
        for i, name in enumerate(names)
    ]
    scene.text('list_attr_celeba.csv', f'image_id,{",".join(ATTRIBUTES)}', *rows)
    parts = (f'{name},{min(max(i - 4, 0), 2)}' for i, name in enumerate(names))
    scene.text('list_eval_partition.csv', 'image_id,partition', *parts)
    scene.text('list_bbox_celeba.csv', 'image_id,x_1,y_1,width,height', '000001.jpg,95,71,226,313')


def inaturalist(scene: Scene, old: bool = True) -> None:
    kinds = [dict(id=i, name=f'species {i}', supercategory='Aves') for i in range(3)]
    for split, count in (('train', 6), ('val', 3)):
        images, annotations = [], []
        for i in range(count):
            folder = (
                f'train_val2018/Aves/{i % 3}' if old else f'{split}/{i % 3:05}_Animalia_{i % 3}'
            )
            name = f'{folder}/{split}{i:08x}.jpg'
            scene.images(name)
            images.append(dict(id=i, file_name=name, width=40, height=30, license=3))
            annotations.append(dict(id=i, image_id=i, category_id=i % 3))
        content = dict(images=images, annotations=annotations, categories=kinds)
        scene.text(f'{split}{"2018" * old}.json', json.dumps(content))


def inaturalist_2021(scene: Scene) -> None:
    inaturalist(scene, old=False)


def oxford_pets(scene: Scene) -> None:
    lines: dict[str, list[str]] = dict(trainval=[], test=[])
    for k, kind in enumerate(('Abyssinian', 'american_bulldog')):
        for i in range(1, 8):
            name = f'{kind}_{i}'
            scene.images(f'images/{name}.jpg')
            trimap = np.full((30, 40), 2, np.uint8)
            trimap[6:16, 5:25], trimap[10:12, 10:12] = 3, 1
            scene.array(f'annotations/trimaps/{name}.png', trimap)
            lines['trainval' if i < 6 else 'test'].append(f'{name} {1 + k} {1 + k} 1')
            if i < 4:
                xml = voc_xml(f'{name}.jpg', [(('cat', 'dog')[k], (5, 6, 25, 16))])
                small = xml.replace('64', '40').replace('48', '30')
                scene.text(f'annotations/xmls/{name}.xml', small)
    for name, rows in lines.items():
        scene.text(f'annotations/{name}.txt', *rows)
    scene.text('annotations/list.txt', '#Image CLASS-ID SPECIES BREED ID', *lines['trainval'])
    scene.text('images/Abyssinian_100.mat', 'MATLAB')


ISIC = 'MEL', 'NV', 'BCC', 'AK', 'BKL', 'DF', 'VASC', 'SCC', 'UNK'


def isic_2019(scene: Scene) -> None:
    rows, more = [], []
    for i in range(24):
        name, kind = f'ISIC_{i:07}', ('NV', 'MEL')[i // 2 % 2]
        scene.images(f'ISIC_2019_Training_Input/{name}.jpg')
        rows.append(f'{name},' + ','.join(f'{float(one == kind)}' for one in ISIC))
        more.append(f'{name},55.0,anterior torso,HAM_{i // 2},female')
    scene.text('ISIC_2019_Training_GroundTruth.csv', f'image,{",".join(ISIC)}', *rows)
    header = 'image,age_approx,anatom_site_general,lesion_id,sex'
    scene.text('ISIC_2019_Training_Metadata.csv', header, *more)


def isic_2018(scene: Scene) -> None:
    kinds = 'MEL', 'NV', 'BCC', 'AKIEC', 'BKL', 'DF', 'VASC'
    for split, count in (('Training', 6), ('Validation', 2)):
        rows = []
        for i in range(count):
            name, kind = f'ISIC_{split[0]}{i:06}', ('NV', 'MEL')[i % 2]
            scene.images(f'ISIC2018_Task3_{split}_Input/{name}.jpg')
            rows.append(f'{name},' + ','.join(f'{float(one == kind)}' for one in kinds))
        place = f'ISIC2018_Task3_{split}_GroundTruth'
        scene.text(f'{place}/{place}.csv', f'image,{",".join(kinds)}', *rows)
    scene.text(
        'ISIC2018_Task3_Training_LesionGroupings.csv',
        'image,lesion_id,diagnosis_confirm_type',
        'ISIC_T000000,HAM_0,histopathology',
    )


def chest_xray(scene: Scene) -> None:
    names = [f'{i // 2:08}_{i % 2:03}.png' for i in range(12)]
    scene.images(*(f'images_{1 + i // 6:03}/images/{name}' for i, name in enumerate(names)))
    found = 'No Finding', 'Cardiomegaly|Effusion', 'Effusion'
    rows = (f'{name},{found[i % 3]},{i % 2},{i // 2},58,M,PA' for i, name in enumerate(names))
    header = 'Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View'
    scene.text('Data_Entry_2017.csv', header, *rows)
    scene.text('train_val_list.txt', *names[:10])
    scene.text('test_list.txt', *names[10:])


PUBLIC_CLASSES = [
    Public('CUB-200-2011', cub, 'classification', BIRDS, (5, 2, 3), held_out=True),
    Public(
        'HAM10000', ham10000, 'classification', ('mel', 'nv'), (20, 4, 0), held_out=True,
        labels={'ISIC_0024000.jpg': 'nv'}, notes=('lesion',),
    ),
    Public(
        'DTD', dtd, 'classification', ('banded', 'dotted', 'lined'), (6, 6, 6),
        notes=('train2.txt',),
    ),
    Public(
        'Caltech-101', caltech, 'classification', ('accordion', 'airplanes'), (6, 2, 0),
        held_out=True, notes=('BACKGROUND_Google',),
    ),
    Public(
        'Food-101', food, 'classification', ('apple_pie', 'baby_back_ribs'), (6, 2, 2),
        held_out=True, labels={'apple_pie/0.jpg': 'apple_pie'},
    ),
    Public(
        'PlantVillage', plant_village, 'classification', ('Apple___Apple_scab', 'Apple___healthy'),
        (6, 2, 0), held_out=True, notes=('gray',),
    ),
    Public(
        'EuroSAT', eurosat, 'classification',
        ('AnnualCrop', 'HerbaceousVegetation', 'PermanentCrop', 'SeaLake'), (8, 4, 0),
        held_out=True, notes=('tenth',),
    ),
    Public(
        'GTSRB', gtsrb, 'classification', ('0', '1'), (8, 4, 2), held_out=True,
        labels={'00001/00002_00001.ppm': '1', 'Final_Test/Images/00001.ppm': '1'},
        notes=('one sign',),
    ),
    Public(
        'GTSRB-tables', gtsrb_tables, 'classification', ('0', '1'), (8, 4, 12), held_out=True,
        labels={'Test/00011.png': '1'}, notes=('one sign',),
    ),
    Public(
        'Tiny-ImageNet', tiny_imagenet, 'classification', ('n01443537', 'n01629819'), (6, 2, 0),
        labels={'val_1.JPEG': 'n01629819'}, notes=('boxes',),
    ),
    Public(
        'CelebA', celeba, 'classification', ('Bald', 'Male', 'Smiling'), (5, 1, 2),
        labels={'000001.jpg': ('Bald', 'Male'), '000003.jpg': ()}, notes=('forty',),
    ),
    Public(
        'CelebA-tables', celeba_tables, 'classification', ('Bald', 'Male', 'Smiling'), (5, 1, 2),
        labels={'000001.jpg': ('Bald', 'Male')}, notes=('forty',),
    ),
    Public(
        'iNaturalist', inaturalist, 'classification', ('species 0', 'species 1', 'species 2'),
        (6, 3, 0), labels={'train00000004.jpg': 'species 1'},
    ),
    Public(
        'iNaturalist-2021', inaturalist_2021, 'classification',
        ('species 0', 'species 1', 'species 2'), (6, 3, 0),
    ),
    Public(
        'Oxford-IIIT-Pet', oxford_pets, 'classification', ('Abyssinian', 'american_bulldog'),
        (8, 2, 4), held_out=True, labels={'american_bulldog_1.jpg': 'american_bulldog'},
    ),
    Public(
        'Oxford-IIIT-Pet', oxford_pets, 'detection', ('cat', 'dog'), (5, 1, 0), held_out=True,
        boxes=dict(cat=(5, 6, 20, 10)), notes=('heads',),
    ),
    Public(
        'Oxford-IIIT-Pet', oxford_pets, 'segmentation', ('foreground', 'background', 'border'),
        (9, 1, 4), held_out=True,
        labels={'Abyssinian_1.jpg': ('foreground', 'background', 'border')},
    ),
    Public(
        'ISIC-2019', isic_2019, 'classification', ('MEL', 'NV'), (20, 4, 0), held_out=True,
        labels={'ISIC_0000002.jpg': 'MEL'}, notes=('lesion',),
    ),
    Public(
        'ISIC-2018-Task3', isic_2018, 'classification', ('MEL', 'NV'), (6, 2, 0),
        labels={'ISIC_V000001.jpg': 'MEL'}, notes=('lesion',),
    ),
    Public(
        'ChestX-ray14', chest_xray, 'classification', ('Cardiomegaly', 'Effusion', 'No Finding'),
        (8, 2, 2), held_out=True, labels={'00000000_001.png': ('Cardiomegaly', 'Effusion')},
        notes=('patient',),
    ),
    Public(
        'Stanford-Cars-folders', stanford_cars, 'classification', CARS, (4, 2, 2), held_out=True,
    ),
]  # fmt: skip
