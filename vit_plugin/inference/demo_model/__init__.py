"""A small detector of drawn shapes, with images: a first picture without a network.

``benchmarks/demo_model.py`` has made the files, and README.md here is the card of the model.
"""

from pathlib import Path

FOLDER = Path(__file__).parent  # a checkpoint for torch, as a folder of a hub
ONNX = FOLDER / 'shapes.onnx'  # the same model for onnxruntime, which starts at once
IMAGES = FOLDER / 'images'
