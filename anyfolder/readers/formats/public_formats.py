"""Formats of single public data sets, which are read where a layout names them."""

from .table import Format
from .wider_face import is_wider_face, parse_wider_face

PUBLIC_FORMATS = (
    Format('WIDER FACE', ('.txt',), is_wider_face, parse_wider_face, 'an image or a box'),
)
