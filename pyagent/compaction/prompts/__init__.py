"""Texts for the model, one file each."""
