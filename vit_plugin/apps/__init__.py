"""The bodies of the commands. Each tool parses its flags and calls one of these."""

from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
