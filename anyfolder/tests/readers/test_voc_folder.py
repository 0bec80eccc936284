"""Pascal VOC's folders: lists of the splits, and encodings of XML."""

from pathlib import Path

import pytest
from image_folders import write_voc
from listings import notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing


def read(folder: Path) -> Listing:
    return read_annotated_folder(Tree(folder))


def write_list(folder: Path, name: str, lines) -> None:
    (folder / 'ImageSets/Main' / name).write_text(''.join(f'{line}\n' for line in lines))


def test_names_in_lists_may_have_spaces_and_be_followed_by_a_number(tmp_path):
    write_voc(tmp_path)
    for old, new in (('000', 'img 0'), ('001', 'an image')):
        for path in ('Annotations/{}.xml', 'JPEGImages/{}.jpg'):
            (tmp_path / path.format(old)).rename(tmp_path / path.format(new))
    write_list(tmp_path, 'train.txt', ['img 0', 'an image  1', '002 -1', '003'])
    assert [record.path.stem for record in read(tmp_path).train] == [
        '002',
        '003',
        'an image',
        'img 0',
    ]


def test_lists_apply_to_the_annotations_next_to_them(tmp_path):
    """VOC2007 and VOC2012, unpacked in one folder."""
    write_voc(tmp_path / 'VOC2007', train=4, val=2)
    write_voc(tmp_path / 'VOC2012', train=2, val=4)
    listing = read(tmp_path)
    assert sizes_of(listing) == [6, 6, 0]
    of_2012 = [record.path.stem for record in listing.train if 'VOC2012' in record.path.parts]
    assert of_2012 == ['000', '001']


def test_test_images_may_have_no_annotation(tmp_path):
    """As VOC2012 was published."""
    write_voc(tmp_path)
    write_list(tmp_path, 'test.txt', ['900', '901'])
    write_list(tmp_path, 'trainval.txt', [f'{i:03d}' for i in range(6)])
    listing = read(tmp_path)
    assert sizes_of(listing) == [4, 2, 0]
    assert ('lines of test.txt left out, since they have no annotation', 2) in notes_of(listing)
    write_list(tmp_path, 'trainval.txt', ['800', '801'])
    with rejects(r"no line of .*trainval\.txt' has an annotation, such as '800'; correct the list"):
        read(tmp_path)


def test_annotations_in_no_list_are_left_out_and_reported(tmp_path):
    write_voc(tmp_path)
    write_list(tmp_path, 'train.txt', ['000', '001', '002'])
    listing = read(tmp_path)
    assert sizes_of(listing) == [3, 2, 0]
    assert ('annotations left out, since they are in no list', 1) in notes_of(listing)


@pytest.mark.parametrize('subfolder', ['', 'ImageSets', 'ImageSets/Layout'])
def test_lists_in_other_folders_give_the_splits_if_main_has_none(tmp_path, subfolder):
    write_voc(tmp_path)
    for path in [*(tmp_path / 'ImageSets/Main').iterdir()]:
        (tmp_path / subfolder).mkdir(exist_ok=True)
        path.rename(tmp_path / subfolder / path.name)
    assert sizes_of(read(tmp_path)) == [4, 2, 0]


@pytest.mark.parametrize('encoding', ['gb2312', 'GBK', 'gb18030', 'utf-16'])
def test_xml_is_read_in_its_declared_encoding(tmp_path, encoding):
    write_voc(tmp_path)
    for path in tmp_path.rglob('*.xml'):
        text = path.read_text().replace('bar', '条')
        path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding))
    assert read(tmp_path).classes == ('square', '条')


def test_chinese_xml_without_a_declared_encoding_raises_with_the_likely_one(tmp_path):
    path = write_voc(tmp_path) / 'Annotations/000.xml'
    path.write_bytes(path.read_text().replace('bar', '方块').encode('gbk'))
    with rejects(r"000\.xml' is not UTF-8, and may contain .*方块.*gb18030"):
        read(tmp_path)


def test_xml_in_utf_8_that_declares_gb2312_is_read(tmp_path):
    write_voc(tmp_path)
    for path in tmp_path.rglob('*.xml'):
        text = path.read_text().replace('bar', '方块')
        path.write_text(f'\n<?xml version="1.0" encoding="gb2312"?>{text}', encoding='utf-8')
    listing = read(tmp_path)
    assert listing.classes == ('square', '方块')
    assert any('declare another encoding, read as UTF-8' in what for what, _ in notes_of(listing))


def test_damaged_xml_raises(tmp_path):
    (write_voc(tmp_path) / 'Annotations/001.xml').write_text('<annotation>')
    with rejects(r'001\.xml. is not XML \('):
        read(tmp_path)
