"""What a run and a model show: outcomes, pictures, progress, the page in the browser."""
