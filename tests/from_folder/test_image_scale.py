"""The size to which a training resizes its images."""

from pathlib import Path
from types import SimpleNamespace

from rejection import rejects

from anyfolder.readers.records import ImageRecord
from vit_plugin.from_folder.image_scale import image_scale


def test_image_that_would_shrink_to_nothing_raises():
    sizes = [(640, 480), (640, 480), (1280, 4)]
    records = [ImageRecord(Path(f'{i}.png'), size=size) for i, size in enumerate(sizes)]
    listing = SimpleNamespace(train=records, parts=dict(train=records))
    assert image_scale(listing, 1000) == (640, 480)
    with rejects(
        "'2.png' has 1280 x 4 pixels, of which a side has less than 2 within 512 x 384; leave"
    ):
        image_scale(listing, 512)
