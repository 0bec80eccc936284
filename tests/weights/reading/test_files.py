"""Checkpoint files of every format are read, and hostile or damaged ones are refused.

No code in a file is ever run.
"""

import errno
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch
from mmengine.logging import HistoryBuffer
from rejection import rejects

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import reading_safely
from vit_plugin.weights.for_mmengine import read_complete
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading import files
from vit_plugin.weights.reading.files import DamagedError, check_readable, read_checkpoint

STATE = {'a': torch.randn(3, 4), 'b': torch.arange(5.0)}


class Hostile:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class AttributeGetter:
    """Gets an attribute of a class when it is unpickled."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __reduce__(self):
        return getattr, (self.owner, self.name)


def save(path: Path) -> None:
    """Save STATE in the format of the suffix."""
    {
        '.npz': lambda: np.savez(path, **{key: value.numpy() for key, value in STATE.items()}),
        '.safetensors': lambda: safetensors.torch.save_file(STATE, path),
        '.pth': lambda: torch.save({'epoch': 3, 'state_dict': STATE}, path),
        '.pt': lambda: torch.save({'model': STATE}, path, _use_new_zipfile_serialization=False),
        '.pkl': lambda: path.write_bytes(
            pickle.dumps({'model': {k: v.numpy() for k, v in STATE.items()}})
        ),
    }[path.suffix]()


@pytest.mark.parametrize('protocol', range(3, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_pickles_of_every_protocol(tmp_path, protocol):
    arrays = {
        'rows': np.arange(6.0).reshape(2, 3),
        'columns': np.asfortranarray(np.arange(6).reshape(2, 3)),
    }
    (tmp_path / 'x.pkl').write_bytes(
        pickle.dumps({'model': arrays, '__author__': 'somebody'}, protocol=protocol)
    )
    weights = open_checkpoint(tmp_path / 'x.pkl').weights
    assert weights.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(weights[name].numpy(), array)


class FromBuffer:
    """Is pickled as protocol 5 pickles an array, but with a content of another size."""

    def __init__(self, content: object) -> None:
        self.content = content

    def __reduce__(self):
        make = np.arange(1.0).__reduce_ex__(5)[0]
        return make, (self.content, np.dtype('f4'), (2**40,), 'C')


@pytest.mark.parametrize('content', [b'1234', bytearray(4), 2**42])
def test_buffers_of_another_size_than_their_array_are_refused(tmp_path, content):
    (tmp_path / 'x.pkl').write_bytes(pickle.dumps({'a': FromBuffer(content)}, protocol=5))
    with rejects('it asks for an array of another size than its content'):
        open_checkpoint(tmp_path / 'x.pkl')


SUFFIXES = ('.npz', '.safetensors', '.pth', '.pt', '.pkl')


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_every_file_format_is_read(tmp_path, suffix):
    path = tmp_path / f'weights{suffix}'
    save(path)
    weights = open_checkpoint(path).weights
    assert set(weights) == set(STATE)
    for key, value in STATE.items():
        assert torch.equal(weights[key], value)


@pytest.mark.parametrize('suffix', ['.pth', '.pt', '.pkl', '.bin'])
@pytest.mark.parametrize('form', ['zip', 'legacy', 'pickle'])
def test_hostile_files_run_no_code(tmp_path, suffix, form):
    path, marker = tmp_path / f'weights{suffix}', tmp_path / 'it_ran'
    content = {'state_dict': dict(STATE), 'meta': Hostile(marker)}
    if form == 'pickle':
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == 'zip')
    with rejects(r'is not read, since that could run code \(it asks for '):
        open_checkpoint(path)
    assert not marker.exists()
    pickle.loads(pickle.dumps(Hostile(marker)))
    assert marker.exists()  # the file is hostile indeed


def test_namespaces_are_read(tmp_path):
    """``rfdetr`` writes the settings of a deployed model as a ``SimpleNamespace``."""
    settings = SimpleNamespace(resolution=384)
    torch.save(dict(model=STATE, args=settings), tmp_path / 'weights.pt')
    assert read_checkpoint(tmp_path / 'weights.pt')['args'] == settings


def test_getattr_reaches_only_the_methods_of_a_history(tmp_path):
    for attribute in (
        (OrderedDict, 'update'),
        (HistoryBuffer, '__init__'),
        (HistoryBuffer, 'register_statistics'),
    ):
        torch.save(
            {'state_dict': STATE, 'x': AttributeGetter(*attribute)}, tmp_path / 'weights.pth'
        )
        with rejects('could run code'):
            open_checkpoint(tmp_path / 'weights.pth')
    history = HistoryBuffer(np.array([1.0, 3.0]), np.array([1, 1]))
    torch.save(
        {'state_dict': STATE, 'history': history, 'best': np.float64(0.5)}, tmp_path / 'weights.pth'
    )
    content = read_checkpoint(tmp_path / 'weights.pth')
    assert content['history'].mean() == 2
    assert content['best'] == 0.5


@pytest.mark.parametrize('suffix', SUFFIXES)
@pytest.mark.parametrize('share', [0.0, 0.3, 0.9])  # of the file that remains
def test_truncated_files_raise_one_sentence(tmp_path, suffix, share):
    path = tmp_path / f'weights{suffix}'
    save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with rejects(r'The checkpoint .* (cannot be read|is damaged)') as error:
        dict(open_checkpoint(path).weights)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('cause', 'words'),
    [
        (MemoryError(), 'There is not enough memory to read the checkpoint'),
        (PermissionError(errno.EACCES, 'Permission denied'), 'allow this process to read it'),
    ],
)
def test_errors_of_the_system_do_not_make_a_file_damaged(tmp_path, monkeypatch, cause, words):
    """A damaged download would be removed."""

    def read_pickle(*args: object, **kwargs: object) -> None:
        raise cause

    save(tmp_path / 'x.pth')
    monkeypatch.setattr(files, 'read_pickle', read_pickle)
    with rejects(words) as error:
        read_checkpoint(tmp_path / 'x.pth')
    assert not isinstance(error.value, DamagedError)


@pytest.mark.filterwarnings('ignore')
def test_init_weights_runs_no_code(tmp_path, tiny):
    marker = tmp_path / 'it_ran'
    torch.save({'state_dict': {}, 'meta': Hostile(marker)}, tmp_path / 'hostile.pth')
    model = VisionTransformer(
        **tiny, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'hostile.pth'))
    )
    with rejects('could run code'):
        model.init_weights()
    assert not marker.exists()


@pytest.mark.parametrize('form', ['zip', 'pickle'])
@pytest.mark.parametrize(
    'call',
    [
        (np.ndarray, ((1,), np.dtype('O'), b'A' * 8)),
        (np.ndarray, ((2**44,), np.dtype('u1'))),
        (np.frombuffer, (b'A' * 8,)),
        (np.dtype, ('O8',)),
    ],
)
def test_arrays_over_memory_that_a_file_chooses_are_not_created(tmp_path, form, call):
    class Forged:
        """Makes this call, a function and its arguments, when it is unpickled."""

        def __reduce__(self):
            return call

    path, content = tmp_path / 'weights.pth', {'state_dict': dict(STATE), 'x': Forged()}
    if form == 'pickle':
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path)
    try:
        weights = open_checkpoint(path).weights
    except ConfigError:
        return
    # If the file is read, numpy's constructor was not called with the file's arguments.
    assert set(weights) == set(STATE)


def repacked(path: Path, compression: int) -> None:
    """Rewrite an archive with this compression."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, 'w', compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    'read',
    [open_checkpoint, read_checkpoint, check_readable, lambda path: read_complete(str(path))],
)
def test_flipped_bits_of_tensors_raise(tmp_path, read):
    path = tmp_path / 'x.pth'
    save(path)
    content = bytearray(path.read_bytes())
    content[content.index(STATE['a'].numpy().tobytes()) + 5] ^= 4
    path.write_bytes(content)
    with pytest.raises(DamagedError, match='Bad CRC-32.*download it again'):
        read(path)
    # Without the payload the tensors are not read.
    assert read_checkpoint(path, mmap=True, payload=False)['epoch'] == 3


@pytest.mark.parametrize('mmap', [False, True])
def test_packed_archives_are_read_and_compressed_ones_refused(tmp_path, mmap):
    path = tmp_path / 'x.pth'
    save(path)
    repacked(path, zipfile.ZIP_STORED)
    assert torch.equal(read_checkpoint(path, mmap=mmap)['state_dict']['a'], STATE['a'])
    repacked(path, zipfile.ZIP_DEFLATED)
    with rejects('compressed after it was saved.*without compression'):
        read_checkpoint(path, mmap=mmap)


def test_archives_without_checksums_are_read(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        save(tmp_path / 'x.pth')
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.equal(open_checkpoint(tmp_path / 'x.pth').weights['a'], STATE['a'])


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['evil.pth', 'evil', 'evil.pth.tar', 'evil.PTH', 'evil.model'])
def test_hostile_files_of_any_name_run_no_code(tmp_path, tiny, name):
    from mmengine.runner import load_checkpoint

    marker = tmp_path / 'it_ran'
    torch.save({'state_dict': {}, 'meta': Hostile(marker)}, tmp_path / name)
    with rejects('could run code'), reading_safely():
        load_checkpoint(VisionTransformer(**tiny), str(tmp_path / name))
    assert not marker.exists()


def test_arrays_of_objects_are_refused(tmp_path):
    marker = tmp_path / 'it_ran'
    np.savez(tmp_path / 'weights.npz', a=np.array([Hostile(marker)], dtype=object))
    with rejects('cannot be read'):
        dict(open_checkpoint(tmp_path / 'weights.npz').weights)
    assert not marker.exists()


@pytest.mark.parametrize(
    ('name', 'description'),
    [
        ('x.JPG', 'an image, .* are the arguments swapped'),
        ('x.onnx', 'an exported model, .* the run that it came from'),
    ],
)
def test_images_and_exported_models_are_refused(tmp_path, name, description):
    (tmp_path / name).write_bytes(b'x')
    with rejects(f"{name}' is {description}"):
        read_checkpoint(tmp_path / name)


def test_missing_and_empty_checkpoints_raise(tmp_path):
    with rejects('There is no checkpoint file'):
        open_checkpoint(tmp_path / 'none.pth')
    torch.save({'epoch': 3}, tmp_path / 'empty.pth')
    with rejects('holds no weights'):
        assert open_checkpoint(tmp_path / 'empty.pth').weights


def test_npz_with_bfloat16_of_jax_is_read_as_float32(tmp_path):
    values = torch.randn(7).bfloat16()
    np.savez(tmp_path / 'weights.npz', a=values.view(torch.uint16).numpy().view('V2'))
    assert torch.equal(open_checkpoint(tmp_path / 'weights.npz').weights['a'], values.float())


def test_npz_is_read_one_array_at_a_time(tmp_path, tiny):
    from vit_plugin.weights.formats import FORMATS

    model = VisionTransformer(**tiny)
    exported, _ = FORMATS['jax'].export(model.state_dict(), heads=2)
    np.savez(
        tmp_path / 'weights.npz', **{key: value.detach().numpy() for key, value in exported.items()}
    )
    weights = open_checkpoint(tmp_path / 'weights.npz').weights
    first, again = weights['cls'], weights['cls']
    assert first.data_ptr() != again.data_ptr()  # arrays are not cached
    load_weights(VisionTransformer(**tiny), weights)


def test_unsupported_members_of_npz_files_raise(tmp_path):
    path = tmp_path / 'weights.npz'
    np.savez(path, a=np.zeros(3, np.longdouble))
    with zipfile.ZipFile(path, 'a') as archive:
        archive.writestr('notes.txt', 'text')
    weights = open_checkpoint(path).weights
    with rejects(r"'a' is an array of .*, and torch has no such numbers"):
        weights['a']
    with rejects(r"'notes.txt' in .* is not an array; save the arrays alone"):
        weights['notes.txt']
