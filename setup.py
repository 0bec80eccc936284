from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = next(line.split("'")[1] for line in (here / 'vit_plugin/__init__.py').read_text().splitlines()
               if line.startswith('__version__'))

# The frameworks, once from the maintained forks and once from upstream. They have the same module
# names and must not be installed together, so neither can be a requirement.
onedl = ['onedl-mmengine>=0.10.12', 'onedl-mmcv>=2.3', 'onedl-mmpretrain>=1.3.6']

setup(
    name='vit_plugin',
    version=version,
    description='Plain and hybrid Vision Transformers for MMPretrain, MMDetection and MMSegmentation',
    long_description=(here / 'README.md').read_text(),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    packages=find_packages(include=['vit_plugin*']),
    python_requires='>=3.10',
    install_requires=['torch>=2.5', 'torchvision', 'timm>=1.0', 'numpy', 'pydantic>=2.7',
                      'requests', 'urllib3>=2.2', 'filelock', 'tqdm'],
    extras_require={
        'onedl': onedl,
        'det': [*onedl, 'onedl-mmdetection>=3.5.1'],
        'seg': [*onedl, 'onedl-mmsegmentation>=1.4.2'],
        'openmmlab': ['mmengine>=0.10.7', 'mmcv-lite>=2.0,<2.2', 'mmpretrain>=1.2',
                      'setuptools<81'],  # MMEngine imports pkg_resources
        'demo': ['scikit-learn'],
        'hf': ['datasets'],
        'pictures': ['grad-cam'],
        'sweep': ['submitit'],
        'logs': ['tensorboard', 'wandb', 'mlflow'],
        'export': ['onnx', 'onnxscript', 'onnxruntime'],
        'test': ['pytest', 'hypothesis', 'scikit-learn', 'scipy', 'ruff', 'torchao',
                 'pytest-xdist'],
    })
