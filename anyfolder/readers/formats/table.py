"""The formats of annotations that are read: a row for each."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .box_tables import is_box_table, is_open_images, parse_box_table
from .coco import is_coco, parse_coco
from .cvat import is_cvat, parse_cvat
from .darwin import darwin_image, is_darwin, parse_darwin
from .datumaro import is_datumaro, parse_datumaro
from .image_lists import is_list, parse_list
from .label_studio import is_label_studio, parse_label_studio
from .labelme import is_labelme, labelme_image, parse_labelme
from .parsed import Parsed
from .supervisely import is_supervisely, parse_supervisely
from .via import is_via, is_via_table, parse_via, parse_via_table
from .voc import is_voc, parse_voc, voc_image
from .yolo import are_labels, parse_yolo

TABLES = ('.csv', '.tsv')
JSON, LISTS = ('.json',), ('.json', '.jsonl')


class Format(NamedTuple):
    """A format of annotations.

    Content is what a suffix stands for: JSON, the root of XML, the lines of a text, the rows of a
    table by their columns. The functions take it with the file, which they only name in messages.

    Attributes:
        name: of the format, as people call it.
        suffixes: of its files, in small letters.
        is_one: whether this is the content of a file of the format. It may see the first row only.
        parse: gives what the file says. It raises ``KeyError``, ``TypeError``, ``ValueError`` or
            ``AttributeError`` where the content is not complete.
        unit: what of the content may not be complete, for messages.
        image: where a file is of one image, the name in it of this image, or nothing. None: a file
            lists images.
        is_strict: whether it is wrong if that name is one image and the name of the file another.
    """

    name: str
    suffixes: tuple[str, ...]
    is_one: Callable[[Any, Path], bool]
    parse: Callable[[Any, Path], Parsed]
    unit: str = 'an image or a box'
    image: Callable[[Any], str] | None = None
    is_strict: bool = False


YOLO = Format('YOLO', ('.txt',), are_labels, parse_yolo, 'a line', image=lambda labels: '')
# The first row that takes a file reads it. Tables, which many folders have beside their
# annotations, and JSONL are only read where no other file is of a format.
FORMATS = (
    Format('COCO', JSON, is_coco, parse_coco),
    Format('LabelMe', JSON, is_labelme, parse_labelme, 'a shape', labelme_image, is_strict=True),
    Format('CVAT', ('.xml',), is_cvat, parse_cvat, 'a shape'),
    Format('Pascal VOC', ('.xml',), is_voc, parse_voc, 'an object', voc_image),
    YOLO,
    Format('VGG Image Annotator', JSON, is_via, parse_via, 'a region'),
    Format('Supervisely', JSON, is_supervisely, parse_supervisely, 'a figure', lambda content: ''),
    Format('V7 Darwin', JSON, is_darwin, parse_darwin, 'an annotation', darwin_image),
    Format('Label Studio', JSON, is_label_studio, parse_label_studio, 'a region'),
    Format('Datumaro', JSON, is_datumaro, parse_datumaro),
    *(
        Format(name, LISTS, partial(is_list, key=key), partial(parse_list, key=key))
        for name, key in (
            ('CreateML', 'annotations'),
            ('BDD100K', 'labels'),
            ('Hugging Face', 'objects'),
        )
    ),
    Format('VGG Image Annotator', TABLES, is_via_table, parse_via_table, 'a region'),
    Format('Open Images', TABLES, is_open_images, parse_box_table, 'a row'),
    Format('a table', TABLES, is_box_table, parse_box_table, 'a row'),
)
