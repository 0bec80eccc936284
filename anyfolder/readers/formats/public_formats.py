"""Formats of single public data sets, only read if a layout names them."""

from .crowdhuman import is_crowdhuman, parse_crowdhuman
from .deepfashion2 import is_deepfashion2, parse_deepfashion2
from .table import Format
from .wider_face import is_wider_face, parse_wider_face
from .xview import is_xview, parse_xview

PUBLIC_FORMATS = (
    Format('WIDER FACE', ('.txt',), is_wider_face, parse_wider_face),
    Format('CrowdHuman', ('.odgt',), is_crowdhuman, parse_crowdhuman),
    Format(
        'DeepFashion2',
        ('.json',),
        is_deepfashion2,
        parse_deepfashion2,
        'an item',
        image=lambda content: '',
    ),
    Format('xView', ('.geojson',), is_xview, parse_xview, 'a feature'),
)
