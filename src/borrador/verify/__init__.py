"""Proof on a user's own model that speculation changes nothing: answers, logits, and the law of sampling."""
