"""The formats that a layout can name, and the tasks that their labels support."""

from collections.abc import Collection, Mapping

# Tasks of labels with boxes and maybe polygons, which are drawn as masks for segmentation.
BOXES = ('detection', 'instance', 'segmentation')
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
# The tasks of each value of the key `format`.
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
    """The tasks that labels of a format support. For a table, they depend on its columns.

    Args:
        format: a key of :data:`FORMATS`.
        columns: the names of the columns of all tables.
        has_shape: whether these define a box or a polygon, see :data:`~.columns.SHAPES`.
    """
    if format != 'table':
        return FORMATS[format]
    if has_shape:
        return BOXES if {'points', 'x1'} & {*columns} else ('detection',)
    if 'mask' in columns:
        return ('segmentation', 'depth')
    return ('classification',)
