"""Measurements: plain against speculative decoding, and the cost of a pass by its rows."""
