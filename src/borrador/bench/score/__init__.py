"""HumanEval's way to score code: run a problem's own tests on what was written, in a sandbox."""
