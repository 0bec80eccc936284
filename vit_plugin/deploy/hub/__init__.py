"""Write a trained model as a folder for Hugging Face's hub that other libraries can read."""
