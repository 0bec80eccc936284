"""A model with its preprocessing as a graph, a file of ONNX, or a folder of a hub."""
