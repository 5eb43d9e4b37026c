from __future__ import annotations

import pytest

from borrador.bench.score.program import Problem, write_program
from borrador.errors import UsageError

PROMPT = 'from math import pi\n\n\ndef area(radius):\n    """Of a circle."""\n'
PROBLEM = Problem(id="p", prompt=PROMPT, test="", entry_point="area")
WHOLE = "def area(radius):\n    return pi * radius**2\n"


def area(answer: str, problem: Problem = PROBLEM) -> float:
    """What the program that was made of an answer says of a circle."""
    program = write_program(problem, answer)
    assert program is not None
    namespace: dict[str, object] = {}
    exec(program, namespace)
    function = namespace["area"]
    assert callable(function)
    return round(float(function(2)), 2)


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{WHOLE}```",
        f"Here it is:\n\n```python\n{WHOLE}```\nIt uses `pi`.\n```python\nprint(area(1))\n```",
        f"First a test:\n```py\nassert area(0) == 0\n```\nand now\n```\n{WHOLE}```",
        f"```python\n{WHOLE}",
        "1. So:\n\n   ```python\n   def area(radius):\n       return pi * radius**2\n   ```\n",
        WHOLE,
        f"Sure!\n{WHOLE}\nThis returns the area.\nNote that it is exact.",
        "    return pi * radius**2\n",
        "    return pi * radius**2\n\nThis is the area.",
        "```python\n    return pi * radius**2\n```",
        "```python\nreturn pi * radius**2\n```",
        "```python\nsquare = radius**2\n    return pi * square\n```",
        "```python\nif radius:\n    return pi * radius**2\nreturn 0\n```",
        f"```python\nimport math\n\n{WHOLE.replace('pi', 'math.pi')}\n\nif __name__ == '__main__':\n    print(1)\n```",
    ],
    ids=[
        "block",
        "prose and a block behind it",
        "block in front of it",
        "cut",
        "in a list",
        "no block",
        "prose without a block",
        "continuation",
        "continuation and prose",
        "body in a block",
        "body without indent",
        "first line without indent",
        "branches without indent",
        "main program",
    ],
)
def test_the_function_of_an_answer_is_found(answer: str) -> None:
    assert area(answer) == 12.57


@pytest.mark.parametrize(
    "answer", ["", "   \n", "I cannot do that.", "The area is pi times the radius.", "```python\n```"]
)
def test_prose_is_no_program(answer: str) -> None:
    assert write_program(PROBLEM, answer) is None


def test_a_prompt_without_a_docstring_is_closed_before_the_whole_function() -> None:
    assert (
        area(WHOLE, Problem(id="p", prompt="from math import pi\ndef area(radius):\n", test="", entry_point="area"))
        == 12.57
    )


def test_a_longer_name_is_not_the_function() -> None:
    program = write_program(PROBLEM, "```python\ndef area_of_all(radii):\n    pass\n```")
    assert program is not None
    assert program.startswith(PROMPT)


def test_an_entry_point_must_be_a_name() -> None:
    with pytest.raises(UsageError, match="entry_point must be a function's name, p has 'a b'"):
        Problem(id="p", prompt="", test="", entry_point="a b")
