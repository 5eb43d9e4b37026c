from __future__ import annotations

from typing import Any

from borrador.engine.line import Line, Request, Ticket


def ticket(key: int, namespace: str) -> Ticket:
    unused: Any = None
    return Ticket(key=key, request=Request((1,), unused, 1), namespace=namespace, deadline=9.0)


def make_line(*namespaces: str) -> tuple[Line, list[Ticket]]:
    line, tickets = Line(), [ticket(key, namespace) for key, namespace in enumerate(namespaces)]
    for each in tickets:
        line.add(each)
    return line, tickets


def drain(line: Line) -> list[int]:
    return [line.pop().key for _ in range(len(line))]


def test_namespaces_take_turns_and_within_one_the_first_is_first() -> None:
    assert drain(make_line("a", "a", "a", "b", "b", "c")[0]) == [0, 3, 5, 1, 4, 2]


def test_whoever_comes_later_waits_for_the_turn_of_his_namespace() -> None:
    line, _ = make_line("a", "a", "b")
    assert line.pop().key == 0
    line.add(ticket(7, "c"))
    line.add(ticket(8, "b"))
    assert drain(line) == [2, 1, 7, 8]


def test_who_is_put_back_is_the_next() -> None:
    line, tickets = make_line("a", "a", "b")
    assert line.pop() is tickets[0]
    line.put_back(tickets[0])
    assert drain(line) == [0, 2, 1]
    line.put_back(tickets[2])
    assert drain(line) == [2]


def test_whoever_leaves_changes_no_order() -> None:
    line, tickets = make_line("a", "a", "b", "a")
    line.remove(tickets[1])
    line.remove(tickets[2])
    assert [each.key for each in line] == [0, 3]
    assert drain(line) == [0, 3]
