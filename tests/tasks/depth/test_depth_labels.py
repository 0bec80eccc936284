"""Pictures of depth maps in the training data."""

import torch
from mmengine.dataset import BaseDataset
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.pictures.data_pictures import data_figures


def with_depth(info):
    """A pipeline step that makes a sample with a constant depth."""
    depth = PixelData(data=torch.full((1, 8, 8), 1.0 + info['sample_idx']))
    sample = BaseDataElement(gt_depth_map=depth, metainfo=dict(img_path=info['img_path']))
    return dict(inputs=torch.zeros(3, 8, 8, dtype=torch.uint8), data_samples=sample)


class Maps(BaseDataset):
    """Images with depth maps, and without classes."""

    def load_data_list(self):
        return [dict(img_path=f'some/{i}.jpg', depth_map_path=f'{i}.png') for i in range(3)]


def test_depth_maps_are_drawn_next_to_their_images():
    ((name, figure),) = data_figures(Maps(pipeline=[with_depth]))
    titles = [panel.get_title() for panel in figure.axes]
    assert name == 'train_batch'
    assert titles[:4] == ['0.jpg', '1.00 to 1.00 m', '1.jpg', '2.00 to 2.00 m']
