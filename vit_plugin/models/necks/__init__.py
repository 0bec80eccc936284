"""Necks: from the outputs of a backbone to what a head takes."""
