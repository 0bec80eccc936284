"""Which image a label belongs to."""

from pathlib import Path

import pytest

from anyfolder.readers.identity import Index

DATA = Path('data')


def paths(text: str) -> list[Path]:
    return [DATA / name for name in text.split()]


@pytest.mark.parametrize(
    ('images', 'label', 'wanted'),
    [
        # in folders of the same structure, next to each other, and in one folder
        ('images/a.jpg', 'labels/a.txt', 'images/a.jpg'),
        ('a.jpg', 'a.txt', 'a.jpg'),
        ('train/images/1.jpg valid/images/1.jpg', 'valid/labels/1.txt', 'valid/images/1.jpg'),
        ('images/train/1.jpg images/val/1.jpg', 'labels/val/1.txt', 'images/val/1.jpg'),
        ('images/train/1.jpg images/val/2.jpg', 'labels/2.txt', 'images/val/2.jpg'),
        ('images/2.jpg', 'labels/train/2.txt', 'images/2.jpg'),
        ('frames_rgb/2.jpg', 'boxes_v2/2.txt', 'frames_rgb/2.jpg'),
        # yolov5#5259: folders in which all frames have the same names
        ('1/f1.png 2/f1.png 3/f1.png', '3/f1.txt', '3/f1.png'),
        ('cam_1/images/0.jpg cam_2/images/0.jpg', 'cam_2/labels/0.txt', 'cam_2/images/0.jpg'),
        ('dogs_images/0.jpg cats_images/0.jpg', 'dogs_labels/0.txt', 'dogs_images/0.jpg'),
        ('2024/cam1/0.jpg 2025/cam1/0.jpg', 'labels/2025/cam1/0.txt', '2025/cam1/0.jpg'),
        ('VOC2007/JPEGImages/1.jpg VOC2012/JPEGImages/1.jpg', 'VOC2012/Annotations/1.xml',
         'VOC2012/JPEGImages/1.jpg'),
        # masks of the same names, and one whose image is missing
        ('JPEGImages/1.jpg SegmentationClass/1.png SegmentationObject/1.png', 'Annotations/1.xml',
         'JPEGImages/1.jpg'),
        ('images/1.jpg masks/1.png masks/2.png', 'labels/2.txt', ''),
        ('masks/1.png', 'labels/1.txt', 'masks/1.png'),
        # missing images, with another image of their name or in their folder
        ('train/images/1.jpg', 'valid/labels/1.txt', ''),
        ('train/1.jpg test/2.jpg', 'test/1.xml', ''),
        ('images/dogs/1.jpg images/not_dogs/4.jpg', 'labels/dogs/4.txt', ''),
        ('images/1.jpg images/more/1.jpg images/more/2.jpg', 'labels/2.txt', ''),
        ('train/1.jpg extra/2.jpg', 'train/labels/2.txt', ''),
        ('cam1/1.jpg cam2/1.jpg cam2/2.jpg', 'labels/cam1/2.txt', ''),
        # but a folder without repeated names is a part of the outer one
        ('images/1.jpg images/more/2.jpg', 'labels/2.txt', 'images/more/2.jpg'),
        # names with the suffix of the image, in another case, and in another Unicode form
        ('images/a.b.jpg', 'labels/a.b.txt', 'images/a.b.jpg'),
        ('images/a.jpg', 'labels/a.jpg.txt', 'images/a.jpg'),
        ('images/A.JPG', 'labels/a.txt', 'images/A.JPG'),
        ('images/cafe\u0301.jpg', 'labels/caf\u00e9.txt', 'images/cafe\u0301.jpg'),
        ('images/A.jpg images/a.jpg', 'labels/a.txt', 'images/a.jpg'),
    ],
)  # fmt: skip
def test_labels_belong_to_the_image_with_the_most_specific_path(images, label, wanted):
    assert Index(DATA, paths(images)).match(Path(label).stem, DATA / label) == paths(wanted)


@pytest.mark.parametrize(
    ('name', 'written_in', 'wanted'),
    [
        ('0.jpg', 'train/_annotations.coco.json', 'train/0.jpg'),
        ('../val/0.jpg', 'train/a.json', 'val/0.jpg'),
        ('train/0.jpg', 'annotations/val.json', 'train/0.jpg'),
        ('C:\\mine\\val\\0.jpg', 'annotations/a.json', 'val/0.jpg'),
        ('/home/me/val/0.png', 'annotations/a.json', 'val/0.jpg'),
        ('0.jpg', 'test/a.json', ''),
        ('0.jpg', 'annotations/a.json', 'train/0.jpg val/0.jpg'),
    ],
)
def test_names_are_looked_up_from_the_file_that_has_them(name, written_in, wanted):
    index = Index(DATA, paths('train/0.jpg val/0.jpg'))
    assert index.match(name, DATA / written_in) == paths(wanted)


def test_stated_split_counts_if_images_are_in_split_folders():
    index = Index(DATA, paths('train/0.jpg val/0.jpg'))
    assert index.match('0.jpg', DATA / 'val.csv', 'val') == paths('val/0.jpg')
    assert index.match('1.jpg', DATA / 'val.csv', 'val') == []
    assert Index(DATA, paths('train/0.jpg')).match('0.jpg', DATA / 'val.csv', 'val')


@pytest.mark.parametrize('name', ['https://x.org/a/1.jpg?size=1', 'http://x.org/1.jpg'])
def test_a_url_names_its_file_without_the_query(name):
    image = DATA / 'images/1.jpg'
    assert Index(DATA, [image]).match(name, DATA / 'labels.csv') == [image]


@pytest.mark.parametrize('name', ['cam%202/0.jpg', '/data/local-files/?d=cam%202/0.jpg'])
def test_folders_of_a_url_are_decoded(name):
    images = [DATA / 'cam 1/0.jpg', DATA / 'cam 2/0.jpg']
    assert Index(DATA, images).match(name, DATA / 'labels.json') == images[1:]


def test_folders_with_a_percent_sign_are_found_as_they_are():
    images = [DATA / 'a%20b/0.jpg', DATA / 'a b/0.jpg']
    index = Index(DATA, images)
    assert index.match('a%20b/0.jpg', DATA / 'labels.json') == images[:1]
    assert index.match('a b/0.jpg', DATA / 'labels.json') == images[1:]
    assert index.match('/data/a%20b/0.jpg', DATA / 'labels.json') == images[:1]
    assert index.match('0', DATA / 'labels/a%20b/0.txt') == images[:1]
