"""Annotation formats: how to recognize and parse their files.

In the module of each format, ``is_*`` recognizes the content of a file, and ``parse_*`` returns it
as :class:`~.parsed.Parsed`. :mod:`.table` lists all formats.
"""
