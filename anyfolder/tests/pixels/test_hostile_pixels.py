"""Small files that state large contents raise with the reason, before they take memory."""

import io
import re
import struct
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bombs import bomb
from image_folders import save_bands
from PIL import Image
from rejection import rejects

from anyfolder import limits
from anyfolder.pixels import arrays, decoded_at_once
from anyfolder.pixels.arrays import open_archive, read_array
from anyfolder.pixels.bands import multiband_shape, read_bands
from anyfolder.pixels.depth_maps import read_depth
from anyfolder.pixels.image_files import image_files, walk_files
from anyfolder.pixels.images import decode, read_image
from anyfolder.pixels.volume_slices import is_sliced, number_of_slices, read_slice
from anyfolder.readers.mask_values import probe_mask


def npy(shape: tuple[int, ...], dtype: str = '<f4', values: bytes = b'') -> bytes:
    """A ``.npy`` file whose header states a shape, whatever values follow."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, dict(descr=dtype, fortran_order=False, shape=shape))
    return file.getvalue() + values


def tiff(tags: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    """A TIFF of one page.

    Args:
        tags: number, type, count and value of each tag.
        following: the offset of the next page; 0 for none.
    """
    entries = b''.join(struct.pack('<HHII', *tag) for tag in tags)
    return b'II*\0' + struct.pack('<IH', 8, len(tags)) + entries + struct.pack('<I', following)


# The tags of an image of 100,000 x 100,000 pixels: width, height, bits, compression, gray, the
# offset of the pixels, and the number of their bytes.
WIDE = [(256, 4, 1, 100_000), (257, 4, 1, 100_000), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
WIDE += [(273, 4, 1, 8), (279, 4, 1, 8)]


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (bomb(), 'too many pixels'),
        (tiff(WIDE), 'too many pixels'),
        # four bands
        (tiff([*WIDE[:6], (277, 3, 1, 4), WIDE[6]]), 'values in an image of bands'),
        # a description of 2 GiB
        (tiff([*WIDE[:5], (270, 2, 2**31, 0), *WIDE[5:]]), 'claim more bytes than the file'),
        (b'II*\0\xff\xff\xff\x7f', 'damaged, or it is truncated'),
        (b'II*\0\x08\0\0\0\xff\xff', 'damaged, or it is truncated'),
        (npy((1000, 1000, 4)), 'and is cut short'),
        (npy((2**20, 2**20, 3)), 'and is cut short'),
        (npy((4, 4, 4), '|O'), 'is not .H, W, bands.'),
    ],
)
def test_headers_that_state_too_much_raise(tmp_path, content, words):
    (tmp_path / 'a.png').write_bytes(content)
    with rejects(f'a.png. cannot be read .*{words}'):
        read_image(tmp_path / 'a.png')
    with pytest.raises(ValueError, match=words):
        decode(content)


def test_too_many_pages_raise(monkeypatch):
    head = b'II*\0' + struct.pack('<I', 8)
    size = 2 + 12 * len(WIDE) + 4  # bytes of a page: number of tags, tags, offset of the next page
    pages = (tiff(WIDE, len(head) + (i + 1) * size)[len(head) :] for i in range(50))
    content = head + b''.join(pages)
    monkeypatch.setitem(limits.LIMITS, 'pages', 10)
    with pytest.raises(ValueError, match='more than 10 pages'):
        multiband_shape(content)


def test_overlapping_pages_raise():
    """A page begins at the third tag of another, whose tags would be read again and again."""
    tags = [(0, 0, 0, 0)] * 10
    tags[2] = (4, 0, 0, 0)  # the number of tags of the second page
    with pytest.raises(ValueError, match='its pages overlap'):
        multiband_shape(tiff(tags, following=8 + 2 + 2 * 12))


def test_valid_bands_are_read(tmp_path):
    values = np.random.default_rng(0).integers(0, 99, (4, 5, 6)).astype(np.uint16)
    save_bands(tmp_path / 'a.tif', values)
    assert np.array_equal(read_bands(tmp_path / 'a.tif'), values)


def jpeg_with_scans(count: int) -> bytes:
    """A progressive JPEG in which the last scan occurs ``count`` more times."""
    file = io.BytesIO()
    Image.new('L', (16, 16)).save(file, 'JPEG', progressive=True)
    content = file.getvalue()
    *_, last = re.finditer(b'\xff\xda', content)
    end = content.rindex(b'\xff\xd9')
    return content[:end] + content[last.start() : end] * count + content[end:]


def test_scans_of_a_jpeg_are_limited():
    assert decode(jpeg_with_scans(50)).shape == (16, 16, 3)
    with pytest.raises(ValueError, match='more than 64 scans of a JPEG'):
        decode(jpeg_with_scans(70))


def write_archive(path: Path, name: str, size: int, header: bytes) -> None:
    """Write an archive of one file: the header, and ``size`` bytes of zero."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, header + bytes(size))


def test_archives_that_unpack_to_too_much_raise(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, 'UNPACKED_BYTES', 1 << 20)
    path = tmp_path / 'a.npz'
    write_archive(path, 'image.npy', size=4 << 20, header=npy((1024, 1024)))
    with pytest.raises(ValueError, match='more than 20 times the bytes of its file, unpacked'):
        open_archive(path)
    assert not is_sliced(path)
    with rejects(r'a\.npz. cannot be read \(.*a\.npz. has more than 20 times'):
        read_image(path)
    write_archive(path, 'image.npy', size=0, header=npy((1024, 1024)))
    with pytest.raises(ValueError, match='claims an array .* and is cut short'):
        open_archive(path)
    np.savez_compressed(path, image=np.zeros((64, 64)), label=np.ones((64, 64)))
    assert read_slice(path, None, 'label').all()


def test_arrays_and_maps_that_state_too_much_raise(tmp_path):
    path = tmp_path / 'depth.npy'
    path.write_bytes(npy((2**20, 2**20)))
    with pytest.raises(ValueError, match='is cut short'):
        read_depth(path)
    path.write_bytes(npy((2, 2), values=np.ones(4, '<f4').tobytes()))
    assert (read_depth(path) == 1).all()
    with path.open('rb') as file:
        assert read_array(file).shape == (2, 2)
    (tmp_path / 'depth.png').write_bytes(bomb())
    with pytest.raises(ValueError, match='too many pixels'):
        read_depth(tmp_path / 'depth.png')
    with pytest.raises(ValueError, match='too many pixels'):
        probe_mask(tmp_path / 'depth.png')


def test_hdf5_datasets_without_values_raise(tmp_path):
    h5py = pytest.importorskip('h5py')
    path, raw = tmp_path / 'a.npy.h5', tmp_path / 'raw'
    raw.write_bytes(bytes(100))
    with h5py.File(path, 'w') as file:
        file.create_dataset('wide', (2, 50_000, 50_000), 'u1', chunks=(1, 100, 100))
        file.create_dataset('long', (10**9, 2, 2), 'u1', chunks=(1, 2, 2))
        file.create_dataset('deep', (10_000, 1000, 1000), 'u1', chunks=(1, 100, 100))
        file.create_dataset('image', (4, 5, 5), 'u1', external=[(str(raw), 0, 100)])
        file['link'] = h5py.ExternalLink('other.h5', '/image')
        file['real'] = np.ones((2, 3, 3))
    for name, words in {
        'wide': 'values in an image of bands',
        'long': 'more than 100,000 slices',
        'deep': 'more than 20 times the bytes',
        'image': 'not an array with values in this file',
        'link': 'not an array with values in this file',
    }.items():
        with pytest.raises(ValueError, match=words):
            read_slice(path, 0, name)
    with pytest.raises(KeyError):
        read_slice(path, 0, 'none')
    with pytest.raises(ValueError, match='not an array with values'):
        number_of_slices(path)
    assert read_slice(path, 1, 'real').all()


def test_deeply_nested_folders_raise(tmp_path):
    deep = tmp_path.joinpath(*['d'] * 100)
    deep.mkdir(parents=True)
    Image.new('RGB', (4, 4)).save(deep.parent.parent / 'a.png')
    with rejects('has more than 100 levels of folders'):
        list(walk_files(tmp_path))
    with rejects('has more than 100 levels of folders'):
        image_files([str(tmp_path)])
    deep.rmdir()
    assert len(image_files([str(tmp_path)])) == 1


def test_threads_decode_no_more_pixels_at_once_than_an_image_may_have(monkeypatch):
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 50)  # the limit is twice that
    peak, current, lock = 0, 0, threading.Lock()

    def decoded(pixels: int) -> None:
        nonlocal peak, current
        with decoded_at_once.room_for(pixels):
            with lock:
                current += pixels
                peak = max(peak, current)
            with lock:
                current -= pixels

    threads = [threading.Thread(target=decoded, args=(60,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert peak == 60
    decoded(1000)  # an image beyond the limit is decoded alone
