"""Images outside of class folders whose class is in a list, as ImageNet's validation images."""

from .findings import Findings
from .image_tree import Tree
from .name_files import find_names
from .records import ImageRecord, Records
from .split_lists import Lists


def flat_images(tree: Tree, records: Records, lists: Lists, findings: Findings) -> Records:
    """Validation or test images that lie in no class folder, with the labels of a list.

    Args:
        tree: the files of the folder.
        records: the images in class folders.
        lists: the lists of images.
        findings: collects labels that no training folder has.
    """
    class_of = {record.path: record.labels[0] for record in records}
    flat = {
        path for path in tree.images if path not in class_of and tree.split(path) in ('val', 'test')
    }
    flat_records: Records = []
    classes, class_of_label = sorted({*class_of.values()}), dict[str, str]()
    listed = sorted(flat & lists.labels.keys())
    if '0' in map(lists.labels.get, listed) and not all(map(str.isdecimal, classes)):
        # The labels are numbers from 0 on: of a file with the same names, or of sorted folders.
        named = find_names(tree, None)
        order = named[1] if named and sorted(named[1]) == classes else classes
        class_of_label = {str(number): name for number, name in enumerate(order)}
    # Images in class folders that are also in a list show what the labels mean.
    class_of_label |= {
        label: class_of[path] for path, label in lists.labels.items() if label and path in class_of
    }
    for path in listed:
        label = lists.labels[path]
        # In ImageNet's tables, boxes follow the label.
        tried = (class_of_label.get(label), label, label.split(' ')[0])
        if name := next((name for name in tried if name in classes), None):
            flat_records.append(ImageRecord(path, tree.split(path), labels=(name,)))
            findings.warn(
                'images outside of class folders, with the class in a list', f'{path}: {name}'
            )
        elif label:
            what = 'images have a class in a list that no training folder has'
            remedy = 'write the names of the folders, or count them from 0'
            findings.reject(what, remedy, f'{label!r} of {path} in {lists.sources[path]}')
    return flat_records
