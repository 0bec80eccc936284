"""The formats that a layout can name, and the tasks that their labels support."""

from collections.abc import Collection, Mapping

BOXES = ('detection', 'instance', 'segmentation')  # for segmentation, polygons are drawn
# Short names for the formats of anyfolder.readers.formats.table.FORMATS, which list objects.
OBJECT_FORMATS = (
    'coco',
    'cvat',
    'yolo',
    'voc',
    'labelme',
    'via',
    'supervisely',
    'darwin',
    'labelstudio',
    'datumaro',
    'createml',
    'bdd100k',
    'huggingface',
)
# The formats of anyfolder.readers.formats.public_formats, with the tasks of their objects.
PUBLIC = dict(
    widerface=('detection',), crowdhuman=('detection',), xview=('detection',), deepfashion2=BOXES
)
FORMATS: Mapping[str, tuple[str, ...]] = {
    'folders': ('classification',),
    'table': BOXES,
    'masks': ('segmentation',),
    'objects': ('detection', 'instance'),
    'depth': ('depth',),
    'panoptic': ('panoptic',),
    **dict.fromkeys(OBJECT_FORMATS, (*BOXES, 'classification')),
    **PUBLIC,
}
TASKS = ('classification', *BOXES, 'panoptic', 'depth')


def tasks_of(format: str, columns: Collection[str], has_shape: bool) -> tuple[str, ...]:
    """The tasks that labels of a format support; for a table these depend on the columns."""
    if format != 'table':
        return FORMATS[format]
    if has_shape:
        return BOXES if {'points', 'x1'} & {*columns} else ('detection',)
    if 'mask' in columns:
        return ('segmentation', 'depth')
    return ('classification',)
