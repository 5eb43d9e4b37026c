"""What this machine offers, and what would make the engine faster on it."""
