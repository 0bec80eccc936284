"""The supported annotation formats, one row each."""

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

# Suffixes of files; image lists may also have an image on each line.
TABLES = ('.csv', '.tsv')
JSON, LISTS = ('.json',), ('.json', '.jsonl')


class Format(NamedTuple):
    """An annotation format.

    The functions take the content of a file and its path, which they only name in messages. The
    content depends on the suffix: the value of JSON, the root of XML, the lines of a text, or the
    rows of a table by column. :mod:`~anyfolder.readers.box_formats` recognizes formats by this.

    Attributes:
        name: the common name of the format.
        suffixes: the suffixes of its files, in lower case.
        accepts: returns whether content belongs to the format. It may get only one row of a table.
        parse: returns the parsed file. It raises ``KeyError``, ``TypeError``, ``ValueError`` or
            ``AttributeError`` if the content is incomplete.
        unit: the part of the content that can be incomplete, for messages.
        image: for formats with a file per image, returns the name of the image in the file, or
            empty. None: a file lists several images.
        is_strict: whether it is an error if that name and the name of the file are those of
            different images.
    """

    name: str
    suffixes: tuple[str, ...]
    accepts: Callable[[Any, Path], bool]
    parse: Callable[[Any, Path], Parsed]
    unit: str = 'an image or a box'
    image: Callable[[Any], str] | None = None
    is_strict: bool = False


YOLO = Format('YOLO', ('.txt',), are_labels, parse_yolo, 'a line', image=lambda labels: '')
# The first row that accepts a file reads it. Tables, which many folders have in addition to
# annotations, and JSONL are only read if no other file belongs to a format.
FORMATS = (
    Format('COCO', JSON, is_coco, parse_coco),
    Format(
        'LabelMe', JSON, is_labelme, parse_labelme, 'a shape', image=labelme_image, is_strict=True
    ),
    Format('CVAT', ('.xml',), is_cvat, parse_cvat, 'a shape'),
    Format('Pascal VOC', ('.xml',), is_voc, parse_voc, 'an object', image=voc_image),
    YOLO,
    Format('VGG Image Annotator', JSON, is_via, parse_via, 'a region'),
    Format(
        'Supervisely', JSON, is_supervisely, parse_supervisely, 'a figure', image=lambda content: ''
    ),
    Format('V7 Darwin', JSON, is_darwin, parse_darwin, 'an annotation', image=darwin_image),
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
