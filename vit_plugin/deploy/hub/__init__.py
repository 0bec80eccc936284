"""Write a trained model as a folder for Hugging Face's hub that other libraries can read.

``publishing.py`` writes and uploads the folder, and ``written_folder.py`` its weights and configs.
How the models of a task are written for a library is a ``WrittenTask``, which the task declares.
"""
