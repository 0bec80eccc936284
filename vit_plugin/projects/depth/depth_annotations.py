"""A data set of images with depth maps, and the transform that loads a depth map.

For MMSegmentation's pipelines.
"""

from mmengine.dataset import BaseDataset

from anyfolder.pixels.depth_maps import read_depth
from vit_plugin.arguments.fields import Positive
from vit_plugin.data.images import name_unreadable_file
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import DATASETS, TRANSFORMS

with needed_by('LoadDepthAnnotations'):
    make_importable()  # so that mmcv imports without its compiled ops
    from mmcv.transforms import BaseTransform


@DATASETS.register_module()
class DepthMaps(BaseDataset):
    """Images with depth maps, listed in a JSON file in MMEngine's format.

    Args:
        *args, **kwargs: arguments of MMEngine's ``BaseDataset``. Its ``ann_file`` is a JSON
            ``{"metainfo": {}, "data_list": [{"img_path": ..., "depth_map_path": ...}, ...]}``, and
            both names may have a folder in ``data_prefix``.
    """


@TRANSFORMS.register_module()
class LoadDepthAnnotations(BaseTransform):
    """Load the depth map (H, W) in the file ``depth_map_path`` as ``gt_depth_map``, in meters.

    Pixels without a depth are 0. MMSegmentation's ``LoadDepthAnnotation`` is not used: it does not
    read both NumPy arrays and 32-bit TIFF with one setting, and leaves NaN in the map. In a test
    pipeline this transform comes after the resize, so that predictions are compared at the
    resolution of the file.

    Args:
        scale: meters per unit of the values in the file.
        max_depth: in meters; larger depths count as unknown.

    Raises:
        UnreadableError: if the file cannot be read, or has another size than its image.
    """

    def __init__(self, scale: Positive = 1.0, max_depth: Positive = 1000.0) -> None:
        self.scale, self.max_depth = scale, max_depth

    def transform(self, results: dict) -> dict:
        """The results of the pipeline with the map, which later transforms resize and crop."""
        path, size = results['depth_map_path'], tuple(results['ori_shape'][:2])
        with name_unreadable_file(path):
            depth = read_depth(path, self.scale)
        with name_unreadable_file(path, 'does not fit its image'):
            if depth.shape != size:
                raise ValueError(
                    f'it has {depth.shape[1]} x {depth.shape[0]} pixels, and its image '
                    f'{size[1]} x {size[0]}'
                )
        depth[depth > self.max_depth] = 0
        fields = [*results.get('seg_fields', ()), 'gt_depth_map']
        return dict(results, gt_depth_map=depth, seg_fields=fields)
