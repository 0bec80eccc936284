"""Deploy a model with its preprocessing: as a graph, an exported file, or a hub folder.

``deployed*.py`` turn a model into one module with its preprocessing, ``export.py`` writes that as
a file, ``exported_model.py`` runs the file without torch, ``hub`` writes folders for Hugging Face's
hub, and ``weight_file.py`` writes weights alone.
"""
