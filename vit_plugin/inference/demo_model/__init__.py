"""A small detector of drawn shapes, with images, for a first picture without a download.

``benchmarks/demo_model.py`` writes the files; README.md here is the card of the model.
"""

from pathlib import Path

DEMO_CHECKPOINT = Path(__file__).parent  # a checkpoint for torch, as a folder of a hub
DEMO_ONNX = DEMO_CHECKPOINT / 'shapes.onnx'  # the same model for onnxruntime, which starts at once
DEMO_IMAGES = DEMO_CHECKPOINT / 'images'
