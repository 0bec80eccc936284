"""Small files that demand much time or memory, or that run code, for :mod:`hostile_files`.

A kind is a function that writes its files into an empty folder, and returns the name of the file
that a refusal must mention. The tables below, such as :data:`CHECKPOINTS`, have the kinds for each
door, by description.
"""

import base64
import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

Kind = Callable[[Path], str]
Text = str | Callable[[], str]  # a large text is made only when it is written
LAYERS = 30  # aliases or entities in each other; each doubles the expanded size
SIDE = 13_300  # side of the largest image that is read, in pixels
NESTED = '[' * 100_000 + ']' * 100_000
ALIASES = 'a0: &a0 [x, x]\n' + ''.join(
    f'a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n' for i in range(1, LAYERS)
)
MERGES = 'a0: &a0 {k: x}\n' + ''.join(
    f'a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n' for i in range(1, LAYERS)
)
ENTITIES = ''.join(f'<!ENTITY x{i} "&x{i - 1};&x{i - 1};">' for i in range(1, LAYERS))
LAUGHS = f'<!DOCTYPE a [<!ENTITY x0 "x">{ENTITIES}]><annotation>&x{LAYERS - 1};</annotation>'
CODE = '!!python/object/apply:os.system ["touch RAN"]\n'


class Runs:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple:
        return os.system, ('touch RAN',)


def made(content: Text) -> str:
    """A text, made if it is not yet."""
    return content if isinstance(content, str) else content()


def text(name: str, content: Text) -> Kind:
    """A file with this text."""

    def write(folder: Path) -> str:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(made(content))
        return Path(name).name

    return write


def binary(name: str, content: Callable[[], bytes]) -> Kind:
    """A file with these bytes, which are made when they are needed."""

    def write(folder: Path) -> str:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content())
        return Path(name).name

    return write


def saved(name: str, content: Any) -> Kind:
    """A file of ``torch.save``."""

    def write(folder: Path) -> str:
        torch.save(content() if callable(content) else content, folder / name)
        return name

    return write


# --- checkpoints -------------------------------------------------------------------------------


def safetensors(tensors: dict[str, tuple[str, list[int]]]) -> bytes:
    """A file of tensors of zeros, from the type and shape of each."""
    header, end = {}, 0
    for name, (kind, shape) in tensors.items():
        size = int(np.prod(shape)) * {'U8': 1, 'F16': 2, 'F32': 4}[kind]
        header[name] = dict(dtype=kind, shape=shape, data_offsets=[end, end + size])
        end += size
    content = json.dumps(header).encode()
    return struct.pack('<Q', len(content)) + content + bytes(end)


def zeros_in_npz(folder: Path) -> str:
    """An archive of NumPy that expands to 6 GB of zeros."""
    name, header, part = 'bomb.npz', io.BytesIO(), bytes(1 << 24)
    shape = dict(descr='<f4', fortran_order=False, shape=(6 << 28,))
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(folder / name, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        info = zipfile.ZipInfo('embedding/kernel.npy')
        info.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(info, 'w', force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(6 << 6):
                member.write(part)
    return name


def npy(shape: tuple[int, ...], kind: str = '<f4') -> bytes:
    """A file of NumPy with only the header of an array, without its values."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, dict(descr=kind, fortran_order=False, shape=shape))
    return file.getvalue()


def false_npz(folder: Path) -> str:
    """An archive of NumPy whose only array claims 4 TB."""
    with zipfile.ZipFile(folder / 'false.npz', 'w') as archive:
        archive.writestr('embedding/kernel.npy', npy((2**40,)))
    return 'false.npz'


def one_part_many_times(folder: Path) -> str:
    """An archive of 8 MB with one member under 10,000 names, 80 GB in all."""
    with zipfile.ZipFile(folder / 'parts.pth', 'w') as archive:
        archive.writestr('x/data.pkl', pickle.dumps({}, 2))
        archive.writestr('x/data/0', bytes(8 << 20))
        first = archive.infolist()[1]
        for i in range(1, 10_000):
            other = zipfile.ZipInfo(f'x/data/{i}')
            for field in ('header_offset', 'file_size', 'compress_size', 'CRC'):
                setattr(other, field, getattr(first, field))
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    return 'parts.pth'


def in_a_hub(config: Text) -> Kind:
    """A folder of a hub with this ``config.json``."""

    def write(folder: Path) -> str:
        (folder / 'hub').mkdir()
        content = safetensors({'blocks.0.attn.qkv.weight': ('F32', [3, 1])})
        (folder / 'hub/model.safetensors').write_bytes(content)
        (folder / 'hub/config.json').write_text(made(config))
        return 'config.json'

    return write


def deep_pickle() -> bytes:
    """A list in a list, 300,000 times."""
    return b'\x80\x02' + b']' * 300_000 + b'a' * 299_999 + b'.'


LORA = 'blocks.0.attn.qkv.lora_{}.default.weight'
CHECKPOINTS: dict[str, Kind] = {
    '100,000 names': binary(
        'x.safetensors',
        lambda: safetensors({f'blocks.{i}.attn.qkv.weight': ('F32', [0]) for i in range(100_000)}),
    ),
    'a header of 90 MB': binary(
        'x.safetensors',
        lambda: struct.pack('<Q', 90 << 20) + json.dumps({'a' * 90_000_000: {}}).encode(),
    ),
    'a file of a million blocks': binary(
        'x.safetensors',
        lambda: safetensors({'T/encoderblock/LayerNorm_0/scale': ('U8', [10_000_000, 1])}),
    ),
    'patches of 20,000 pixels': binary(
        'x.safetensors',
        lambda: safetensors({'patch_embed.proj.weight': ('F16', [192, 3, 20_000, 1])}),
    ),
    '6 GB of zeros': zeros_in_npz,
    'an array that claims 4 TB': false_npz,
    'a pickle that runs code': saved('x.pth', lambda: dict(state_dict=Runs())),
    'a table of a pickle': binary(
        'x.pkl', lambda: b'\x80\x02Nr' + struct.pack('<I', 2**31 - 1) + b'.'
    ),
    'a pickle with 8 GB to come': binary(
        'x.pkl', lambda: b'\x80\x05\x96' + struct.pack('<Q', 2**33) + b'.'
    ),
    'a pickle of 30 million lists': binary(
        'x.pkl', lambda: b'\x80\x02' + b']0' * 30_000_000 + b'N.'
    ),
    'a pickle nested 300,000 deep': binary('x.pkl', deep_pickle),
    'one part 10,000 times': one_part_many_times,
    'adapters with a product of 80 GB': saved(
        'x.pth',
        lambda: dict(
            meta=dict(lora=dict(r=1, alpha=1)),
            state_dict={
                'blocks.0.attn.qkv.base_layer.weight': torch.zeros(1, 1),
                LORA.format('A'): torch.zeros(1, 100_000),
                LORA.format('B'): torch.zeros(100_000, 1),
            },
        ),
    ),
    'a tensor of one value, expanded': saved(
        'x.pth', lambda: dict(state_dict={'patch_embed.proj.weight': torch.zeros(1).expand(2**40)})
    ),
}
WITH_CONFIGS: dict[str, Kind] = {
    'a config of 20 MB': saved(
        'x.pth', lambda: dict(state_dict={}, meta=dict(cfg='a = [' + '[],' * 7_000_000 + ']'))
    ),
    'a config of 10,000 parentheses': saved(
        'x.pth', lambda: dict(state_dict={}, meta=dict(cfg='model = ' + '(' * 10_000))
    ),
}
HUBS: dict[str, Kind] = {
    'a config.json nested 100,000 deep': in_a_hub(NESTED),
    'a config.json of 70 million lists': in_a_hub(lambda: '[' + '[],' * 70_000_000 + '[]]'),
}

# --- configs and graphs ------------------------------------------------------------------------

CONFIGS: dict[str, Kind] = {
    'aliases of aliases': text('c.yaml', ALIASES),
    'merges of merges': text('c.yaml', MERGES),
    'a tag that calls a function': text('c.yaml', f'a: {CODE}'),
    'a name of a function': text('c.yml', 'a: !!python/name:os.system\n'),
    'YAML nested 20,000 deep': text('c.yaml', 'a: ' + '[' * 20_000 + ']' * 20_000),
    'JSON nested 100,000 deep': text('c.json', NESTED),
    'YAML of 30 MB': text('c.yaml', lambda: 'a: [' + 'x,' * 15_000_000 + 'x]'),
    'JSON of 30 million objects': text('c.json', lambda: '[' + '{},' * 30_000_000 + '{}]'),
    'a number of a million digits': text('c.json', '{"a": ' + '9' * 1_000_000 + '}'),
    'a list': text('c.yaml', '- 1\n'),
}


def onnx_file(path: Path, facts: dict[str, Any] | str, side: int | str = 32) -> None:
    """Write a classifier of two classes whose logits are constant.

    Args:
        path: the file.
        facts: this package's metadata, as values or as text.
        side: side of the images in pixels, or the name of a dynamic dimension.
    """
    from onnx import TensorProto, helper, numpy_helper, save

    logits = numpy_helper.from_array(np.zeros((1, 2), np.float32), 'value')
    graph = helper.make_graph(
        [helper.make_node('Identity', ['value'], ['logits'])],
        'graph',
        [helper.make_tensor_value_info('images', TensorProto.FLOAT, ['batch', 3, side, side])],
        [helper.make_tensor_value_info('logits', TensorProto.FLOAT, [1, 2])],
        [logits],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    content = facts if isinstance(facts, str) else json.dumps(facts)
    helper.set_model_props(model, dict(vit_plugin=content))
    save(model, str(path))


def resize(*arguments: Any) -> dict[str, Any]:
    """A step of the metadata that resizes an image."""
    return dict(resize=[*arguments], interpolation='bilinear', backend='cv2')


PLAIN_FACTS: dict[str, Any] = dict(
    classes=['a', 'b'], multi_label=False, rgb=True, steps=[resize('exact', 32, 32)]
)


def graph(side: int | str = 32, **facts: Any) -> Kind:
    """A file in ONNX whose metadata differ from :data:`PLAIN_FACTS` in these."""

    def write(folder: Path) -> str:
        onnx_file(folder / 'm.onnx', PLAIN_FACTS | facts, side)
        return 'm.onnx'

    return write


def nested_facts(folder: Path) -> str:
    """Metadata nested 100,000 deep."""
    onnx_file(folder / 'm.onnx', NESTED)
    return 'm.onnx'


GRAPHS: dict[str, Kind] = {
    'metadata of 60,000 pixels': graph(steps=[resize('exact', 60_000, 60_000)]),
    'the same in a graph of any size': graph('side', steps=[resize('exact', 60_000, 60_000)]),
    'an edge of 60,000 pixels': graph('side', steps=[resize('edge', 'short', 60_000)]),
    'padding to 60,000': graph('side', steps=[dict(pad=[60_000, 60_000], fill=0)]),
    'a crop of 60,000': graph('side', steps=[dict(crop=[60_000, 60_000], fill=0)]),
    'a multiple of 60,000': graph('side', steps=[dict(unit=60_000, fill=0)]),
    'slices of one pixel': graph(slices=1),
    'metadata nested 100,000 deep': nested_facts,
}

# --- names, labels and tables ------------------------------------------------------------------


def pictures(folder: Path, count: int = 8) -> None:
    """Images that differ."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        Image.new('RGB', (64, 64), (9 * i, 9, 9)).save(folder / f'{i}.png')


def yolo(name: str, content: Text, sets: bool = True) -> Kind:
    """A folder of YOLO in which one file has this content.

    Args:
        name: the file, such as ``data.yaml`` with the names of the classes.
        content: its content.
        sets: whether the folders of the splits are added to a ``data.yaml``.
    """

    def write(folder: Path) -> str:
        pictures(folder / 'data/images')
        (folder / 'data/labels').mkdir()
        for i in range(8):
            (folder / f'data/labels/{i}.txt').write_text('0 0.5 0.5 0.3 0.3\n')
        if name != 'data.yaml':
            (folder / 'data/data.yaml').write_text('names: [a]\ntrain: images\nval: images\n')
        ends = '\ntrain: images\nval: images\n' if name == 'data.yaml' and sets else ''
        (folder / 'data' / name).write_text(made(content) + ends)
        return Path(name).name

    return write


NAMES: dict[str, Kind] = {
    'aliases of aliases': yolo('data.yaml', f'{ALIASES}names: *a{LAYERS - 1}'),
    'merges of merges': yolo('data.yaml', f'{MERGES}names: *a{LAYERS - 1}'),
    'the class 999999999': yolo('data.yaml', 'names: {0: a, 999999999: b}'),
    'a class of 10,000 digits': yolo('data.yaml', f'names: {{0: a, {"9" * 10_000}: b}}'),
    'names nested 20,000 deep': yolo('data.yaml', 'names: ' + '[' * 20_000 + ']' * 20_000),
    'a tag that calls a function': yolo('data.yaml', f'names: [a]\nb: {CODE}'),
    'a line of 20 MB': yolo('classes.txt', lambda: 'x ' * 10_000_000),
    'a path of 100,000 folders': yolo(
        'data.yaml', f'names: [a]\ntrain: {"a/" * 100_000}\nval: images\n', sets=False
    ),
    '100,000 places': yolo(
        'data.yaml', f'names: [a]\ntrain: [{"a, " * 100_000}b]\nval: images\n', sets=False
    ),
    'places that are not text': yolo('data.yaml', 'names: [a]\ntrain: [[a]]\n', sets=False),
}


def coco(annotations: Any, image: Callable[[Path], None] = pictures) -> Kind:
    """A folder of COCO with these annotations: a list of them, or the text of the whole file."""

    def write(folder: Path) -> str:
        image(folder / 'data/images')
        names = sorted(path.name for path in (folder / 'data/images').iterdir())
        content = annotations if isinstance(annotations, list) else made(annotations)
        if isinstance(annotations, list):
            listed = [dict(id=i, file_name=name) for i, name in enumerate(names)]
            categories = [dict(id=1, name='a')]
            content = json.dumps(
                dict(images=listed, annotations=annotations, categories=categories)
            )
        (folder / 'data/annotations.json').write_text(content)
        return 'annotations.json'

    return write


def runs(counts: Any, size: tuple[int, int] = (64, 64)) -> list[dict[str, Any]]:
    """A list of one annotation, whose mask has these run lengths."""
    one = dict(
        image_id=0,
        category_id=1,
        bbox=[0, 0, size[1], size[0]],
        segmentation=dict(size=[*size], counts=counts),
    )
    return [dict(one, id=0)]


def voc(content: Text) -> Kind:
    """A folder of Pascal VOC with one annotation file of this content."""

    def write(folder: Path) -> str:
        pictures(folder / 'data/images')
        (folder / 'data/Annotations').mkdir()
        (folder / 'data/Annotations/0.xml').write_text(made(content))
        return '0.xml'

    return write


def labelme(folder: Path) -> str:
    """A mask of 60,000 x 60,000 pixels in a file of LabelMe."""
    pictures(folder / 'data', 1)
    mask = base64.b64encode(png(60_000, 60_000, 0, 1)).decode()
    shape = dict(label='a', shape_type='mask', points=[[0, 0], [9, 9]], mask=mask)
    (folder / 'data/0.json').write_text(json.dumps(dict(imagePath='0.png', shapes=[shape])))
    return '0.json'


def many_masks(folder: Path) -> str:
    """20,000 objects of 512 pixels each in an image of 4096 x 4096, next to small images."""
    side, length = 4096, 512
    annotations = []
    for i in range(20_000):
        (annotation,) = runs([i * length, length, side * side - (i + 1) * length], (side, side))
        column, row = divmod(i * length, side)
        annotations.append(dict(annotation, id=i, bbox=[column, row, 1, length]))

    def images(images: Path) -> None:
        pictures(images)
        Image.new('1', (side, side)).save(images / '0.png')

    coco(annotations, images)(folder)
    return '0.png'


BOXES: dict[str, Kind] = {
    'COCO nested 100,000 deep': coco(NESTED),
    'COCO of 30 million objects': coco(lambda: '[' + '{},' * 30_000_000 + '{}]'),
    'COCO with a number of a million digits': coco('{"images": ' + '9' * 1_000_000 + '}'),
    'VOC with a billion laughs': voc(LAUGHS),
    'VOC nested 100,000 deep': voc('<annotation>' + '<a>' * 100_000),
    'VOC of 2 million elements': voc(lambda: '<annotation>' + '<a/>' * 2_000_000 + '</annotation>'),
    'VOC of 100 MB': voc(lambda: '<annotation>' + ' ' * 100_000_000 + '</annotation>'),
    'a label of 2 MB in a line': yolo('labels/0.txt', '0 ' + '0.5 ' * 500_000),
    'a label of 30 million lines': yolo('labels/0.txt', lambda: '0\n' * 30_000_000),
    'LabelMe with a mask of 60,000 pixels': labelme,
}
POLYGONS: dict[str, Kind] = {
    'a run length of five million bits': coco(runs('o' * 1_000_000)),
    'run lengths that overflow': coco(runs([2**62, 2**62, 2**62, 2**62 + 64 * 64])),
    '20,000 masks of 17 million pixels': many_masks,
}


def table(name: str, content: Text) -> Kind:
    """A folder of images with a table of their classes."""

    def write(folder: Path) -> str:
        pictures(folder / 'data/images')
        (folder / 'data' / name).write_text(made(content))
        return name

    return write


TABLES: dict[str, Kind] = {
    'a line of 30 MB': table('labels.csv', lambda: 'filename,label\n0.png,' + 'x' * 30_000_000),
    'a million columns': table('labels.csv', ','.join(map(str, range(1_000_000))) + '\n'),
    'a quote without end': table('labels.csv', 'filename,label\n0.png,"' + 'x\n' * 500_000),
    '60 million cells': table('labels.csv', lambda: ('filename' + ',a' * 300 + '\n') * 200_000),
    'JSONL nested 50,000 deep': table('metadata.jsonl', NESTED[50_000:-50_000] + '\n'),
    'a list of a line of blanks': table('train.txt', 'a ' * 100_000),
}

# --- pixels --------------------------------------------------------------------------------------


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG."""
    return (
        struct.pack('>I', len(content))
        + kind
        + content
        + struct.pack('>I', zlib.crc32(kind + content))
    )


def png(width: int, height: int, color: int, bits: int, pixels: bytes = b'') -> bytes:
    """A PNG of this size, type of color (0 gray, 2 RGB, 3 palette) and number of bits.

    ``pixels`` are the compressed rows. By default there are none.
    """
    header = struct.pack('>IIBBBBB', width, height, bits, color, 0, 0, 0)
    palette = chunk(b'PLTE', bytes(6)) if color == 3 else b''
    return (
        b'\x89PNG\r\n\x1a\n'
        + chunk(b'IHDR', header)
        + palette
        + chunk(b'IDAT', pixels or zlib.compress(b''))
        + chunk(b'IEND', b'')
    )


def wide_png(folder: Path, count: int, color: int = 0) -> None:
    """Images of 177 million pixels in 22 KB."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = zlib.compress(bytes((1 + (SIDE + 7) // 8) * SIDE), 9)
    for i in range(count):
        (folder / f'{i}.png').write_bytes(png(SIDE, SIDE, color, 1, pixels))


def scans() -> bytes:
    """A progressive JPEG of 177 million pixels with 3,000 scans."""

    def segment(mark: int, content: bytes) -> bytes:
        return bytes([0xFF, mark]) + struct.pack('>H', len(content) + 2) + content

    def code(kind: int, value: int) -> bytes:
        return segment(0xC4, bytes([kind, 1, *[0] * 15, value]))

    blocks = ((SIDE + 7) // 8) ** 2
    bits, remaining = '', blocks
    while remaining > 0:  # end-of-band runs: blocks without a coefficient
        run = max(min(remaining, 32_767), 16_384)
        bits, remaining = bits + '0' + format(run - 16_384, '014b'), remaining - run
    bits += '1' * (-len(bits) % 8)
    empty = int(bits, 2).to_bytes(len(bits) // 8, 'big').replace(b'\xff', b'\xff\0')
    start = b'\xff\xd8' + segment(0xDB, bytes([0, *[1] * 64]))
    start += segment(0xC2, struct.pack('>BHHB', 8, SIDE, SIDE, 1) + b'\1\x11\0')
    start += code(0, 0) + code(0x10, 0xE0)
    start += segment(0xDA, b'\1\1\0\0\0\0') + bytes((blocks + 7) // 8)
    return start + 3_000 * (segment(0xDA, b'\1\1\0\1\x3f\0') + empty) + b'\xff\xd9'


def tiff(pages: int, *more: tuple[int, int, int, int]) -> bytes:
    """A TIFF whose pages of 4 x 4 pixels all use the same bytes.

    ``more`` are further tags: number, type, count, and value or offset.
    """
    tags = [(256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    tags = sorted([*tags, (273, 4, 1, 8), (279, 4, 1, 16), *more])
    entries = b''.join(struct.pack('<HHII', *tag) for tag in tags)
    size = 2 + len(entries) + 4
    ends = [8 + (i + 1) * size for i in range(pages - 1)] + [0]
    parts = (struct.pack('<H', len(tags)) + entries + struct.pack('<I', end) for end in ends)
    return b'II*\0' + struct.pack('<I', 8) + b''.join(parts)


def hdf5(**options: Any) -> Kind:
    """A volume in HDF5 that claims more data than it has; the options are those of h5py."""

    def write(folder: Path) -> str:
        import h5py

        with h5py.File(folder / 'a.npy.h5', 'w') as file:
            file.create_dataset('image', **options)
        return 'a.npy.h5'

    return write


IMAGES: dict[str, Kind] = {
    'a PNG of 60,000 x 60,000': binary('a.png', lambda: png(60_000, 60_000, 2, 8)),
    'a JPEG of 3,000 scans': binary('a.jpg', scans),
    'a TIFF of a million pages': binary('a.tif', lambda: tiff(1_000_000)),
    'a TIFF of tags over its bytes': binary(
        'a.tif', lambda: tiff(3_000, *((60_000 + i, 1, 4_000_000, 8) for i in range(100)))
    ),
    'a TIFF of 4 million bands': binary('a.tif', lambda: tiff(1, (277, 4, 1, 4_000_000))),
    'a TIFF of 100,000 x 100,000': binary(
        'a.tif',
        lambda: tiff(1).replace(
            struct.pack('<HHII', 256, 4, 1, 4) + struct.pack('<HHII', 257, 4, 1, 4),
            struct.pack('<HHII', 256, 4, 1, 100_000) + struct.pack('<HHII', 257, 4, 1, 100_000),
        ),
    ),
    'an array of 4 TB': binary('a.npy', lambda: npy((2**20, 2**20, 1))),
    '6 GB of zeros': zeros_in_npz,
    'a volume of 2.5 GB slices': hdf5(shape=(2, 50_000, 50_000), dtype='u1', chunks=(1, 99, 99)),
    'a volume of a billion slices': hdf5(shape=(10**9, 2, 2), dtype='u1', chunks=(1, 2, 2)),
    'a volume in another file': hdf5(shape=(4, 5, 5), dtype='u1', external=[('raw', 0, 100)]),
}


def masks(mask: Callable[[Path], None], count: int = 1) -> Kind:
    """Images of 177 million pixels with masks that ``mask`` writes into a folder.

    A refusal must name the only mask, or the folder of several.
    """

    def write(folder: Path) -> str:
        wide_png(folder / 'data/images', count)
        (folder / 'data/masks').mkdir()
        mask(folder / 'data/masks')
        return '0.png' if count == 1 else 'masks'

    return write


MASKS: dict[str, Kind] = {
    'a mask of 60,000 x 60,000': masks(
        lambda folder: (folder / '0.png').write_bytes(png(60_000, 60_000, 0, 8)) and None
    ),
    'four masks of 177 million pixels': masks(lambda folder: wide_png(folder, 4, 3), 4),
}


def deep_folder(folder: Path) -> str:
    """10,000 folders, each in the one before: a path to the last would be too long."""
    (folder / 'data').mkdir()
    pictures(folder / 'data/a', 2)
    here = os.open(folder / 'data/a', os.O_RDONLY)
    for _ in range(10_000):
        os.mkdir('d', dir_fd=here)
        inner = os.open('d', os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    return 'data'


FOLDERS: dict[str, Kind] = {'10,000 folders in each other': deep_folder}
