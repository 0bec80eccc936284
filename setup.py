import gzip
import os
import shutil
import tarfile
import time
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

here = Path(__file__).parent
version = next(
    line.split("'")[1]
    for line in (here / 'vit_plugin/__init__.py').read_text().splitlines()
    if line.startswith('__version__')
)


class BuildWithRecipes(build_py):
    """Puts the recipes, tools and model index into vit_plugin/.mim, where mim and MMEngine look.

    An editable install has links there, so that it has no second copy to edit.
    """

    def run(self) -> None:
        os.umask(0o022)  # the modes of what is written from here on are in the wheel
        super().run()
        folder = (here if self.editable_mode else Path(self.build_lib)) / 'vit_plugin/.mim'
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ('configs', 'tools', 'model-index.yml'):
            if self.editable_mode:
                (folder / name).symlink_to(Path('../..', name))
            elif (here / name).is_dir():
                shutil.copytree(
                    here / name, folder / name, ignore=shutil.ignore_patterns('__pycache__')
                )
            else:
                shutil.copy2(here / name, folder / name)


class ReproducibleArchive(sdist):
    """Writes an archive that depends on its files and SOURCE_DATE_EPOCH alone.

    setuptools does so for a wheel. In its archive are the times, owners and order of a machine.
    """

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owner) -> str:
        if format != 'gztar':
            return super().make_archive(base_name, format, root_dir, base_dir, **owner)
        seconds = int(os.environ.get('SOURCE_DATE_EPOCH', time.time()))

        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = seconds, 0, 0, '', ''
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        path = Path(f'{base_name}.tar.gz')
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            open(path, 'wb') as file,
            gzip.GzipFile('', 'wb', fileobj=file, mtime=seconds) as packed,
            tarfile.open(fileobj=packed, mode='w', format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(base_dir, filter=plain)  # in the order of names
        return str(path)


# The frameworks, once from the maintained forks and once from upstream. They have the same module
# names and must not be installed together, so neither can be a requirement.
# They require opencv-python, which needs the libraries of a desktop. pip installs this build,
# which has the same files and needs none, after it (docs/install.md).
opencv = 'opencv-contrib-python-headless'
onedl = ['onedl-mmengine>=0.10.12', 'onedl-mmcv>=2.3.2', 'onedl-mmpretrain>=1.3.6', opencv]

# Packages for the tests, and for a change to the code.
test = [
    'pytest',
    'hypothesis',
    'scikit-learn',
    'scipy',
    'ruff',
    'torchao',
    'pytest-xdist',
    'setuptools',
    'build',
    'tensorboard',
    'pillow-heif',
    'h5py',
    'tifffile',
    'psutil',
]

export = ['onnx', 'onnxscript', 'onnxruntime']

setup(
    name='vit_plugin',
    version=version,
    description='Hybrid and plain Vision Transformers for MMPretrain, MMDetection, MMSegmentation',
    long_description=(here / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    packages=find_packages(include=['anyfolder*', 'vit_plugin*']),
    package_data={
        'anyfolder.layouts': ['known/*.yaml'],
        'vit_plugin.inference.demo_model': [
            'README.md',
            '*.json',
            '*.onnx',
            '*.safetensors',
            '*/*',
        ],
    },
    cmdclass={'build_py': BuildWithRecipes, 'sdist': ReproducibleArchive},
    entry_points={
        'console_scripts': [
            'vit-plugin = vit_plugin.__main__:main',
            'anyfolder = anyfolder.__main__:main',
        ]
    },
    python_requires='>=3.10',
    classifiers=[f'Programming Language :: Python :: 3.{minor}' for minor in range(10, 15)],
    install_requires=[
        'torch>=2.10',
        'torchvision>=0.25',
        'timm>=1.0.31',
        'numpy',
        'pydantic>=2.8',
        'requests',
        'urllib3>=2.2',
        'filelock>=3.12',
        'tqdm',
    ],
    extras_require={
        'onedl': onedl,
        'mmengine': [onedl[0], opencv],
        'det': [*onedl, 'onedl-mmdetection>=3.5.1', 'supervision>=0.31'],
        'seg': [*onedl, 'onedl-mmsegmentation>=1.4.2', 'supervision>=0.31', 'scipy'],
        'openmmlab': [
            'mmengine>=0.10.7',
            'mmcv-lite>=2.0,<2.2',
            'mmpretrain>=1.2',
            opencv,
            'setuptools<81',  # MMEngine imports pkg_resources
        ],
        'demo': ['scikit-learn', 'gradio>=6', 'onnxruntime'],
        'lora': ['peft'],
        'coco': ['faster-coco-eval'],
        'hf': ['datasets'],
        'transformers': ['transformers>=5'],
        'heic': ['pillow-heif'],
        'volumes': ['h5py'],
        # imagecodecs has the codecs, such as LZW.
        'bands': ['tifffile', 'imagecodecs'],
        'logs': ['tensorboard', 'wandb', 'mlflow'],
        'export': export,
        'openvino': [*export, 'openvino'],
        'docs': ['sphinx', 'myst-parser', 'furo', 'sphinx-copybutton'],
        'test': test,
        'dev': [*test, 'mypy', 'pre-commit', 'coverage', 'types-requests', 'types-tqdm'],
    },
)
