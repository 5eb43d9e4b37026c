"""Answers of a given shape: which tokens a JSON schema, a regular expression or a grammar lets follow."""
