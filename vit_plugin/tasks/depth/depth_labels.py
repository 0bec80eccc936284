"""Depth maps, drawn next to the images of a data set."""

from typing import Any

from anyfolder.pictures.drawn_labels import colored
from vit_plugin.report.pictures.annotations import Annotations, as_array
from vit_plugin.report.pictures.data_labels import DataLabels
from vit_plugin.report.pictures.image_grid import Panel


def panels_of(sample: Any) -> list[Panel]:
    """The map in colors, with its smallest and its largest depth."""
    if 'gt_depth_map' not in sample:
        return []
    depth = as_array(sample.gt_depth_map.data[0])
    known = depth[depth > 0]
    title = f'{known.min():.2f} to {known.max():.2f} m' if known.size else 'not known'
    return [Panel(colored(depth, in_meters=True), Annotations(depth.shape), title)]


DEPTH_LABELS = DataLabels('depth_map_path', panels=panels_of)
