"""Small files that claim much are refused with what is wrong, before memory is taken."""

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

from anyfolder.pixels import arrays, decoded_at_once
from anyfolder.pixels.arrays import open_archive, read_array
from anyfolder.pixels.bands import read_bands, shape_of
from anyfolder.pixels.depth_maps import read_depth
from anyfolder.pixels.image_files import image_files, walk_files
from anyfolder.pixels.images import decode, read_image
from anyfolder.pixels.volume_slices import is_sliced, number_of_slices, read_slice
from anyfolder.readers.mask_values import probe_mask


def npy(shape: tuple[int, ...], kind: str = '<f4', values: bytes = b'') -> bytes:
    """An array in NumPy's format with another shape than it has values."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, dict(descr=kind, fortran_order=False, shape=shape))
    return file.getvalue() + values


def tiff(tags: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    """A TIFF of one page: its tags as number, type, count and value."""
    entries = b''.join(struct.pack('<HHII', *tag) for tag in tags)
    return b'II*\0' + struct.pack('<IH', 8, len(tags)) + entries + struct.pack('<I', following)


# Width, height, bits, compression, gray, the place of the pixels, and their bytes.
WIDE = [(256, 4, 1, 100_000), (257, 4, 1, 100_000), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
WIDE += [(273, 4, 1, 8), (279, 4, 1, 8)]


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (bomb(), 'too many pixels'),
        (tiff(WIDE), 'too many pixels'),
        (tiff([*WIDE[:6], (277, 3, 1, 4), WIDE[6]]), 'values in an image of bands'),
        (tiff([*WIDE[:5], (270, 2, 2**31, 0), *WIDE[5:]]), 'claim more bytes than the file'),
        (b'II*\0\xff\xff\xff\x7f', 'damaged, or it is truncated'),
        (b'II*\0\x08\0\0\0\xff\xff', 'damaged, or it is truncated'),
        (npy((1000, 1000, 4)), 'and is cut short'),
        (npy((2**20, 2**20, 3)), 'and is cut short'),
        (npy((4, 4, 4), '|O'), 'is not .H, W, bands.'),
    ],
)
def test_headers_that_claim_too_much(tmp_path, content, words):
    (tmp_path / 'a.png').write_bytes(content)
    with rejects(f'a.png. cannot be read .*{words}'):
        read_image(tmp_path / 'a.png')
    with pytest.raises(ValueError, match=words):
        decode(content)


def test_pages_without_end(monkeypatch):
    pages = 50
    head, size = b'II*\0' + struct.pack('<I', 8), 2 + 12 * len(WIDE) + 4
    content = head + b''.join(tiff(WIDE, 8 + (i + 1) * size)[8:] for i in range(pages))
    monkeypatch.setitem(arrays.beyond.__globals__['LIMITS'], 'pages', 10)
    with pytest.raises(ValueError, match='more than 10 pages'):
        shape_of(content)


def test_bands_are_read_as_before(tmp_path):
    values = np.random.default_rng(0).integers(0, 99, (4, 5, 6)).astype(np.uint16)
    save_bands(tmp_path / 'a.tif', values)
    assert np.array_equal(read_bands(tmp_path / 'a.tif'), values)


@pytest.mark.parametrize(('scans', 'is_read'), [(50, True), (70, False)])
def test_scans_of_a_jpeg(scans, is_read):
    file = io.BytesIO()
    Image.new('L', (16, 16)).save(file, 'JPEG', progressive=True)
    content = file.getvalue()
    *_, last = re.finditer(b'\xff\xda', content)
    end = content.rindex(b'\xff\xd9')
    content = content[:end] + content[last.start() : end] * scans + content[end:]
    if is_read:
        assert decode(content).shape == (16, 16, 3)
    else:
        with pytest.raises(ValueError, match='more than 64 scans of a JPEG'):
            decode(content)


def zeros(path: Path, name: str, size: int, header: bytes) -> None:
    """An archive of zeros."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, header + bytes(size))


def test_archives_of_zeros(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, 'UNPACKED', 1 << 20)
    path = tmp_path / 'a.npz'
    zeros(path, 'image.npy', 4 << 20, npy((1024, 1024)))
    with pytest.raises(ValueError, match='more than 20 times the bytes of its file, unpacked'):
        open_archive(path)
    assert not is_sliced(path)
    with rejects(r'a\.npz. cannot be read \(.*a\.npz. has more than 20 times'):
        read_image(path)
    zeros(path, 'image.npy', 0, npy((1024, 1024)))
    with pytest.raises(ValueError, match='claims an array .* and is cut short'):
        open_archive(path)
    np.savez_compressed(path, image=np.zeros((64, 64)), label=np.ones((64, 64)))
    assert read_slice(path, None, 'label').all()


def test_arrays_of_numpy(tmp_path):
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


def test_hdf5_that_has_no_values(tmp_path):
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


def test_folders_without_end(tmp_path):
    deep = tmp_path.joinpath(*['d'] * 100)
    deep.mkdir(parents=True)
    Image.new('RGB', (4, 4)).save(deep.parent.parent / 'a.png')
    with rejects('has more than 100 levels of folders'):
        list(walk_files(tmp_path))
    with rejects('has more than 100 levels of folders'):
        image_files([str(tmp_path)])
    deep.rmdir()
    assert len(image_files([str(tmp_path)])) == 1


def test_as_many_pixels_at_once_as_one_image_may_have(monkeypatch):
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 50)
    most, now, lock = 0, 0, threading.Lock()

    def decoded(pixels: int) -> None:
        nonlocal most, now
        with decoded_at_once.room_for(pixels):
            with lock:
                now += pixels
                most = max(most, now)
            with lock:
                now -= pixels

    threads = [threading.Thread(target=decoded, args=(60,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 60
    decoded(1000)  # alone
