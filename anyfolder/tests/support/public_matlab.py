"""Public data sets in MATLAB files and archives, whose layouts state how to convert them."""

import h5py
import numpy as np
import scipy.io
from public_maps import VOC_CLASSES, depth_of, mask_of
from public_scene import PublicDataSet, Scene


def sbd(scene: Scene) -> None:
    root = 'benchmark_RELEASE/dataset'
    for i in range(6):
        name = f'2008_{i:06}'
        scene.images(f'{root}/img/{name}.jpg')
        for folder, key in (('cls', 'GTcls'), ('inst', 'GTinst')):
            content = {key: dict(Segmentation=mask_of(0, 8), Categories=[8])}
            scipy.io.savemat(scene.path(f'{root}/{folder}/{name}.mat'), content)
    for split, numbers in (('train', range(4)), ('val', range(4, 6))):
        scene.text(f'{root}/{split}.txt', *(f'2008_{i:06}' for i in numbers))


def flowers(scene: Scene) -> None:
    scene.images(*(f'jpg/image_{i:05}.jpg' for i in range(1, 9)))
    numbers = dict(trnid=[[1, 2, 3, 4]], valid=[[5, 6]], tstid=[[7, 8]])
    scipy.io.savemat(scene.path('setid.mat'), numbers)
    scipy.io.savemat(scene.path('imagelabels.mat'), dict(labels=[[77, 5] * 4]))


def stanford_cars(scene: Scene) -> None:
    names = [f'{i:05}.jpg' for i in range(1, 7)]
    scene.images(*(f'cars_train/{name}' for name in names), 'cars_test/00001.jpg')
    columns = 'bbox_x1', 'bbox_y1', 'bbox_x2', 'bbox_y2', 'class', 'fname'
    rows = [(6, 7, 26, 17, 1 + i % 2, name) for i, name in enumerate(names)]
    boxes = np.array([rows], [(column, object) for column in columns])
    scipy.io.savemat(scene.path('devkit/cars_train_annos.mat'), dict(annotations=boxes))
    scipy.io.savemat(scene.path('devkit/cars_meta.mat'), dict(class_names=np.array([CARS], object)))


def nyu_labeled(scene: Scene) -> None:
    random = np.random.default_rng(0)
    with h5py.File(scene.path('nyu_depth_v2_labeled.mat'), 'w') as file:
        file['images'] = random.integers(0, 255, (5, 3, 40, 30), np.uint8)
        file['depths'] = np.stack([depth_of(i).T for i in range(5)])


def synapse(scene: Scene) -> None:
    random = np.random.default_rng(0)
    for case in range(4):
        for number in range(2):
            path = scene.path(f'Synapse/train_npz/case{case:04}_slice{number:03}.npz')
            image = random.random((30, 40)).astype(np.float32)
            np.savez(path, image=image, label=mask_of(0, 1, 6, 8).astype(np.float32))
    scene.text('Synapse/test_vol_h5/case0001.npy.h5', 'HDF5')
    scene.text('Synapse/lists/lists_Synapse/train.txt', 'case0000_slice000')


ORGANS = (
    'background', 'aorta', 'gallbladder', 'left kidney', 'right kidney', 'liver', 'pancreas',
    'spleen', 'stomach',
)  # fmt: skip
CARS = 'AM General Hummer SUV 2000', 'Acura RL Sedan 2012'
# Layout, writer, task, classes, numbers of training, validation and test images, and the rest.
PUBLIC_MATLAB = [
    PublicDataSet('SBD', sbd, 'segmentation', VOC_CLASSES, (4, 2, 0)),
    PublicDataSet('Flowers-102', flowers, 'classification', ('5', '77'), (4, 2, 2)),
    PublicDataSet('Stanford-Cars', stanford_cars, 'classification', CARS, (4, 2, 0), held_out=True),
    PublicDataSet(
        'Stanford-Cars', stanford_cars, 'detection', CARS, (5, 1, 0), held_out=True,
        boxes={CARS[0]: (5, 6, 20, 10)},
    ),
    PublicDataSet(
        'NYU-Depth-V2-labeled', nyu_labeled, 'depth', (), (4, 1, 0), held_out=True, farthest=4
    ),
    PublicDataSet('Synapse', synapse, 'segmentation', ORGANS, (6, 2, 0), held_out=True),
]  # fmt: skip
