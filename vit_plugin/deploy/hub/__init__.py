"""A trained model as a folder for Hugging Face's hub, which other libraries read too."""
