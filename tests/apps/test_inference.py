import cv2
import numpy as np
import pytest
import timm
import torch

from vit_plugin.apps.inference import Pretrained, image_files, prepare_at_size, read_image
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer


@pytest.fixture
def photo(tmp_path) -> str:
    path = tmp_path / 'photo.png'
    cv2.imwrite(str(path), np.full((40, 61, 3), (255, 0, 128), dtype=np.uint8))  # BGR
    return str(path)


def test_a_name_of_timm_brings_arch_and_normalisation(tmp_path, photo):
    name = 'test_vit.r160_in1k'
    theirs = timm.create_model(name, pretrained=False).eval()
    torch.save(theirs.state_dict(), tmp_path / 'weights.pth')
    model = Pretrained(f'timm://{name}', str(tmp_path / 'weights.pth'))
    seen = prepare_at_size(model, photo, 80)
    assert seen.inputs.shape == (1, 3, 80, 128)  # 122 pixels are 7.6 patches of 16
    assert seen.covered == (80, 128)
    assert seen.image.shape == (80, 128, 3)
    assert seen.image[5, 5].tolist() == [128, 0, 255]  # RGB
    expected = (torch.tensor([128., 0., 255.]) / 255 - torch.tensor(theirs.pretrained_cfg['mean'])) / torch.tensor(
        theirs.pretrained_cfg['std'])
    torch.testing.assert_close(seen.inputs[0, :, 7, 9], expected)
    images = torch.randn(1, 3, 160, 160)
    with torch.no_grad():
        torch.testing.assert_close(model.backbone(images)[-1], theirs.forward_features(images)[:, 0], atol=1e-4,
                                   rtol=1e-4)


def test_grey_models_get_grey_images(tmp_path, photo):
    options = dict(patch_embed=dict(in_channels=1), img_size=32)
    torch.save(VisionTransformer('Ti/16', **options).state_dict(), tmp_path / 'weights.pth')
    model = Pretrained('Ti/16', str(tmp_path / 'weights.pth'), **options)
    seen = prepare_at_size(model, photo, 32)
    assert seen.inputs.shape == (1, 1, 32, 48)
    assert seen.image.shape == (32, 48, 3)


def test_folders_are_their_images_in_order(tmp_path, photo):
    folder = tmp_path / 'folder'
    folder.mkdir()
    for name in ('b.JPG', 'a.png', 'notes.txt'):
        (folder / name).touch()
    assert image_files([photo, str(folder)]) == [photo, str(folder / 'a.png'), str(folder / 'b.JPG')]
    with pytest.raises(ConfigError, match="There is no image 'none'"):
        image_files(['none'])


def test_what_is_no_image_is_named(tmp_path):
    path = tmp_path / 'no.png'
    path.write_text('no image')
    with pytest.raises(ConfigError, match=r"no\.png' cannot be read"):
        read_image(str(path))
