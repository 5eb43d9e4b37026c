"""The tables of arXiv 2211.17192 and 2302.01318, computed and measured again: see `__main__`."""
