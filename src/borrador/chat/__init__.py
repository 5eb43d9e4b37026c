"""A conversation in a terminal, with the engine or with a server."""
