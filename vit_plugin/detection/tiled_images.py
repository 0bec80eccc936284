"""Training on tiles: a data set that enumerates them, and the transform that crops them."""

from typing import Any

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.files.tiles import Area, View, choose_views
from vit_plugin.registry import DATASETS, TRANSFORMS, needed_class

CocoDataset: Any = needed_class('TiledCocoDataset', 'mmdet.datasets:CocoDataset')
BaseTransform: Any = needed_class('CutTile', 'mmcv.transforms:BaseTransform')


@DATASETS.register_module()
class TiledCocoDataset(CocoDataset):
    """MMDetection's ``CocoDataset`` with a tile of an image, or the whole image, as each sample.

    See :func:`~vit_plugin.files.tiles.choose_views` for the choice of tiles and their objects.
    Masks and boxes are clipped to the tile. The image is cropped by :class:`CutTile`.

    Args:
        tile: side of a tile in pixels of the image.
        **kwargs: arguments of ``CocoDataset``.
    """

    renamed_arguments = {'file_client_args': 'backend_args=...'}

    def __init__(self, *args: Any, tile: PositiveInt, **kwargs: Any) -> None:
        self.tile = tile
        super().__init__(*args, **kwargs)

    def load_data_list(self) -> list[dict]:
        images = super().load_data_list()
        views = choose_views(
            (
                (
                    (image['width'], image['height']),
                    [instance['bbox'] for instance in image['instances']],
                    [instance['ignore_flag'] for instance in image['instances']],
                )
                for image in images
            ),
            self.tile,
        )
        return [_crop_sample(images[view.image], view) for view in views]


def _crop_sample(image: dict[str, Any], view: View) -> dict[str, Any]:
    """Restrict the data info of an image to a view: its tile, and the objects in it."""
    left, top, right, bottom = view.area
    instances = []
    for number, box, ignored in zip(
        view.objects, view.boxes.tolist(), view.ignored.tolist(), strict=True
    ):
        instance = dict(image['instances'][number], bbox=box, ignore_flag=int(ignored))
        if 'mask' in instance:
            image_size = image['width'], image['height']
            instance['mask'] = _crop_mask(instance['mask'], view.area, image_size)
        instances.append(instance)
    size = dict(width=right - left, height=bottom - top)
    return dict(image, instances=instances, tile=view.area, **size)


def _crop_mask(mask: Any, area: Area, size: tuple[int, int]) -> dict[str, Any]:
    """Crop a mask to an area, as COCO's run lengths.

    Args:
        mask: polygons, or run lengths of the whole image.
        area: left, top, right and bottom.
        size: width and height of the image.
    """
    from pycocotools import mask as coco

    left, top, right, bottom = area
    if isinstance(mask, dict):
        is_compressed = not isinstance(mask['counts'], list)
        compressed = mask if is_compressed else coco.frPyObjects(mask, *size[::-1])
        pixels = coco.decode(compressed)[top:bottom, left:right]
        return coco.encode(pixels.copy(order='F'))
    # x and y alternate in a polygon.
    moved = [[value - (left, top)[i % 2] for i, value in enumerate(polygon)] for polygon in mask]
    return coco.merge(coco.frPyObjects(moved, bottom - top, right - left))


@TRANSFORMS.register_module()
class CutTile(BaseTransform):
    """Crops an image to its tile in a :class:`TiledCocoDataset`, after it was read."""

    def transform(self, results: dict) -> dict:
        left, top, right, bottom = results['tile']
        image = results['img'][top:bottom, left:right]
        return dict(results, img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])
