"""The facts about a data set that its class and its config state, such as its classes."""

import os
from collections.abc import Mapping
from typing import Any

from mmengine.fileio import list_from_file


def stated_metainfo(
    dataset: Mapping[str, Any], class_metainfo: Mapping[str, Any], opens_files: bool = True
) -> dict[str, Any]:
    """The metainfo of a data set. If its classes are a text file, it has the names in that file.

    Args:
        dataset: its config.
        class_metainfo: what its class states, ``METAINFO``. The config has priority.
        opens_files: whether to read such a file, as MMEngine does. If not, the classes are empty.
    """
    metainfo = {**class_metainfo, **(dataset.get('metainfo') or {})}
    classes = metainfo.get('classes')
    if isinstance(classes, str) and os.path.isfile(classes):
        metainfo['classes'] = list_from_file(classes) if opens_files else []
    return metainfo
