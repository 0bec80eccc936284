"""Public data sets with masks and depth, as their downloads unpack, with a few small images.

Downloads have more files than images and labels; some are written, too, and must be ignored.
"""

import numpy as np
from public_boxes import pascal_voc, penn_fudan
from public_scene import PublicDataSet, Scene


def mask_of(*values: int) -> np.ndarray:
    """A mask (H, W) of the first value with a square of each further value."""
    mask = np.full((30, 40), values[0], np.uint8)
    for i, value in enumerate(values[1:]):
        mask[5:15, 1 + 8 * i : 8 + 8 * i] = value
    return mask


def depth_of(offset: int) -> np.ndarray:
    """A map (H, W) that rises to 4 m below three unknown rows, minus ``offset`` millimeters."""
    depth = np.linspace(0.8, 4, 1200).reshape(30, 40) - offset / 1000
    depth[:3] = 0
    return depth.astype(np.float32)


def ade20k(scene: Scene) -> None:
    rows = ['Idx\tRatio\tTrain\tVal\tStuff\tName', '1\t0.15\t11664\t1172\t1\twall']
    rows += ['2\t0.1\t6046\t612\t1\tbuilding, edifice', '3\t0.1\t8265\t796\t1\tsky']
    folder = 'ADEChallengeData2016'
    scene.text(f'{folder}/objectInfo150.txt', *rows)
    for split, count in (('training', 4), ('validation', 2)):
        for i in range(1, count + 1):
            name = f'{split}/ADE_{split[:5]}_{i:08}'
            scene.images(f'{folder}/images/{name}.jpg')
            scene.array(f'{folder}/annotations/{name}.png', mask_of(0, 1, 2, 3))
    scene.text(f'{folder}/sceneCategories.txt', 'ADE_train_00000001 airport_terminal')


def cityscapes(scene: Scene, with_train_ids: bool = False, annotations: str = 'gtFine') -> None:
    for split, count in (('train', 4), ('val', 2), ('test', 1)):
        for i in range(count):
            name = f'{split}/aachen/aachen_{i:06}_000019'
            scene.images(f'leftImg8bit/{name}_leftImg8bit.png')
            # road, car, static and unlabeled; test images are unlabeled
            values = (0,) if split == 'test' else (7, 26, 4, 0)
            scene.array(f'{annotations}/{name}_{annotations}_labelIds.png', mask_of(*values))
            scene.array(f'{annotations}/{name}_{annotations}_instanceIds.png', mask_of(7, 26))
            scene.array(f'{annotations}/{name}_{annotations}_color.png', mask_of(7, 26))
            scene.text(
                f'{annotations}/{name}_{annotations}_polygons.json',
                '{"imgHeight": 30, "objects": []}',
            )
            if with_train_ids:
                scene.array(
                    f'{annotations}/{name}_{annotations}_labelTrainIds.png', mask_of(0, 13, 255)
                )


def cityscapes_train_ids(scene: Scene) -> None:
    cityscapes(scene, with_train_ids=True)


def cityscapes_coarse(scene: Scene) -> None:
    cityscapes(scene, annotations='gtCoarse')


def camvid_colors(scene: Scene, mask: str, image: str) -> None:
    """Write an image, and a mask of stripes in the colors of sky, road and void."""
    scene.images(image)
    colors = np.zeros((30, 40, 3), np.uint8)
    colors[:10], colors[10:20] = (128, 128, 128), (128, 64, 128)
    scene.array(mask, colors)


def camvid(scene: Scene) -> None:
    for i in range(6):
        name = f'0001TP_{6690 + 30 * i:06}'
        folder = 'LabeledApproved_full'
        mask = f'{folder}/{name}_L.png'
        camvid_colors(scene, mask, image=f'701_StillsRaw_full/{name}.png')
    rows = '64 128 64\tAnimal', '128 64 128\tRoad', '128 128 128\tSky', '0 0 0\tVoid'
    scene.text('label_colors.txt', *rows)


def camvid_splits(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2), ('test', 1)):
        for i in range(count):
            name = f'0001TP_{split}{i:03}'
            mask = f'CamVid/{split}_labels/{name}_L.png'
            camvid_colors(scene, mask, image=f'CamVid/{split}/{name}.png')
    rows = 'name,r,g,b', 'Road,128,64,128', 'Sky,128,128,128', 'Void,0,0,0'
    scene.text('CamVid/class_dict.csv', *rows)


def loveda(scene: Scene) -> None:
    number = 0
    for split, count in (('Train', 2), ('Val', 1), ('Test', 1)):
        for area in ('Urban', 'Rural'):
            for _ in range(count):
                scene.images(f'{split}/{area}/images_png/{number}.png')
                if split != 'Test':
                    mask = mask_of(0, 1, 3, 7)
                    scene.array(f'{split}/{area}/masks_png/{number}.png', mask)
                number += 1


def isic_lesions(scene: Scene) -> None:
    for split, count in (('Training', 4), ('Validation', 2)):
        for i in range(count):
            name = f'ISIC_{split[0]}{i:06}'
            scene.images(f'ISIC2018_Task1-2_{split}_Input/{name}.jpg')
            folder = f'ISIC2018_Task1_{split}_GroundTruth'
            scene.array(f'{folder}/{name}_segmentation.png', mask_of(0, 255))
    scene.text('ISIC2018_Task1-2_Training_Input/ATTRIBUTION.txt', 'CC-0')


def drive(scene: Scene) -> None:
    for split, first in (('training', 21), ('test', 1)):
        for i in range(first, first + 6):
            scene.images(f'DRIVE/{split}/images/{i:02}_{split}.tif')
            scene.array(f'DRIVE/{split}/1st_manual/{i:02}_manual1.gif', mask_of(0, 255))
            field_of_view = mask_of(255, 0)
            scene.array(f'DRIVE/{split}/mask/{i:02}_{split}_mask.gif', field_of_view)


def bdd100k_masks(scene: Scene) -> None:
    for split, count in (('train', 4), ('val', 2)):
        for i in range(count):
            name = f'{split}/0004a4c0-{i}'
            scene.images(f'bdd100k/images/10k/{name}.jpg')
            scene.array(f'bdd100k/labels/sem_seg/masks/{name}.png', mask_of(0, 13, 255))
            scene.array(f'bdd100k/labels/sem_seg/colormaps/{name}.png', mask_of(0, 13))


def voc_with_sbd(scene: Scene) -> None:
    """Pascal VOC with SegmentationClassAug, which has masks of all images of 2012."""
    pascal_voc(scene)
    folder = 'VOCdevkit/VOC2012'
    train, val = ([f'2012_{k}{i:05}' for i in range(3)] for k in range(2))
    for name in (*train, *val):
        scene.array(f'{folder}/SegmentationClassAug/{name}.png', mask_of(0, 8, 255))
    scene.text(f'{folder}/ImageSets/Segmentation/train_aug.txt', *train)


def nyu(scene: Scene) -> None:
    for i in range(6):
        folder = 'official_splits/test/bathroom' if i > 3 else f'sync/bathroom_{i // 2:04}'
        scene.images(f'{folder}/rgb_{i:05}.jpg')
        depth = (depth_of(i) * 1000).astype(np.uint16)
        scene.array(f'{folder}/sync_depth_{i:05}.png', depth)


def sun_rgbd(scene: Scene) -> None:
    for i, sensor in enumerate(
        ('kv1/NYUdata', 'kv2/kinect2data', 'realsense/lg', 'xtion/sun3ddata')
    ):
        folder = f'SUNRGBD/{sensor}/NYU{i:04}'
        scene.images(f'{folder}/image/NYU{i:04}.jpg')
        for name in ('depth', 'depth_bfx'):
            depth = (depth_of(i) * 1000).astype(np.uint16) << 3  # eighths of a millimeter
            scene.array(f'{folder}/{name}/NYU{i:04}.png', depth)
        scene.text(f'{folder}/scene.txt', ('bathroom', 'office')[i % 2])
        scene.text(f'{folder}/seg.mat', 'MATLAB')


def diode(scene: Scene) -> None:
    for split, count in (('train', 3), ('val', 2)):
        for folder in ('indoors/scene_00019/scan_00183', 'outdoor/scene_00022/scan_00193'):
            for i in range(count):
                name = f'{split}/{folder}/00019_00183_indoors_{i:03}_010'
                scene.images(f'{name}.png')
                scene.array(f'{name}_depth.npy', depth_of(i)[..., None])
                scene.array(f'{name}_depth_mask.npy', (depth_of(i) > 0).astype(np.float64))


STREET_CLASSES = (
    'road', 'sidewalk', 'building', 'wall', 'fence', 'pole', 'traffic light', 'traffic sign',
    'vegetation', 'terrain', 'sky', 'person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle',
    'bicycle',
)  # fmt: skip
VOC_CLASSES = (
    'background', 'aeroplane', 'bicycle', 'bird', 'boat', 'bottle', 'bus', 'car', 'cat', 'chair',
    'cow', 'diningtable', 'dog', 'horse', 'motorbike', 'person', 'pottedplant', 'sheep', 'sofa',
    'train', 'tvmonitor',
)  # fmt: skip
LAND_CLASSES = 'background', 'building', 'road', 'water', 'barren', 'forest', 'agriculture'
# Layout, writer, task, classes, numbers of training, validation and test images, and the rest.
PUBLIC_MAPS = [
    PublicDataSet(
        'ADE20K', ade20k, 'segmentation', ('wall', 'building, edifice', 'sky'), (4, 2, 0),
        labels={'ADE_train_00000001.jpg': ('wall', 'building, edifice', 'sky')},
        notes=('Pixels of 0',),
    ),
    PublicDataSet(
        'Cityscapes', cityscapes, 'segmentation', STREET_CLASSES, (4, 2, 0),
        labels={'aachen_000000_000019_leftImg8bit.png': ('road', 'car')},
        notes=('masks of test are empty',),
    ),
    PublicDataSet(
        'Cityscapes', cityscapes_train_ids, 'segmentation', STREET_CLASSES, (4, 2, 0),
        labels={'aachen_000000_000019_leftImg8bit.png': ('road', 'car')},
    ),
    PublicDataSet(
        'Cityscapes', cityscapes_coarse, 'segmentation', STREET_CLASSES, (4, 2, 0),
        labels={'aachen_000000_000019_leftImg8bit.png': ('road', 'car')},
        notes=('masks of test are empty',),
    ),
    PublicDataSet(
        'CamVid', camvid, 'segmentation', ('Animal', 'Road', 'Sky'), (5, 1, 0), held_out=True,
        labels={'0001TP_006690.png': ('Road', 'Sky')}, notes=('Pixels of Void are not labeled',),
    ),
    PublicDataSet(
        'CamVid-splits', camvid_splits, 'segmentation', ('Road', 'Sky'), (4, 2, 1),
        notes=('Pixels of Void are not labeled',),
    ),
    PublicDataSet(
        'LoveDA', loveda, 'segmentation', LAND_CLASSES, (4, 2, 0),
        labels={'images_png/0.png': ('background', 'road', 'agriculture')},
        notes=('images of Test have no masks',),
    ),
    PublicDataSet(
        'ISIC-lesions', isic_lesions, 'segmentation', ('skin', 'lesion'), (4, 2, 0),
        labels={'ISIC_T000000.jpg': ('skin', 'lesion')},
    ),
    PublicDataSet(
        'DRIVE', drive, 'segmentation', ('background', 'vessel'), (5, 1, 6), held_out=True,
        labels={'21_training.tif': ('background', 'vessel')}, notes=('field of view',),
    ),
    PublicDataSet(
        'BDD100K', bdd100k_masks, 'segmentation', STREET_CLASSES, (4, 2, 0),
        labels={'train/0004a4c0-0.jpg': ('road', 'car')},
    ),
    PublicDataSet(
        'Pascal-VOC', pascal_voc, 'segmentation', VOC_CLASSES, (4, 4, 2),
        labels={'2007_000000.jpg': ('background', 'cat')},
    ),
    PublicDataSet(
        'Pascal-VOC', voc_with_sbd, 'segmentation', VOC_CLASSES, (3, 2, 0),
        labels={'2012_000002.jpg': ('background', 'cat')}, notes=('extended training set (SBD)',),
    ),
    PublicDataSet(
        'Penn-Fudan', penn_fudan, 'segmentation', ('background', 'pedestrian'), (5, 1, 0),
        held_out=True, labels={'FudanPed00000.png': ('background', 'pedestrian')},
    ),
    PublicDataSet(
        'NYU-Depth-V2', nyu, 'depth', (), (3, 1, 2), held_out=True, farthest=4,
        notes=('scenes are in sync',),
    ),
    PublicDataSet(
        'SUN-RGB-D', sun_rgbd, 'depth', (), (3, 1, 0), held_out=True, farthest=4,
        notes=('beyond 8.19 m',),
    ),
    PublicDataSet(
        'SUN-RGB-D', sun_rgbd, 'classification', ('bathroom', 'office'), (2, 2, 0), held_out=True
    ),
    PublicDataSet('DIODE', diode, 'depth', (), (6, 4, 0), farthest=4, notes=('depth_mask.npy',)),
]  # fmt: skip
