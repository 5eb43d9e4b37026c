"""A saved benchmark as one page of HTML that needs nothing else: no network, no script, no other file."""
