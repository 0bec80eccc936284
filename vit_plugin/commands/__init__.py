"""The bodies of the commands. Each tool parses its flags and calls one of these."""
