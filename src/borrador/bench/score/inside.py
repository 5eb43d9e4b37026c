"""Runs inside the sandbox, by itself: limits its process, forbids it nearly everything, and runs a program's tests.

Standard input has the job as JSON. Standard output gets the verdict behind a secret that was made for this run only, so
that nothing a program prints, and no end before its tests, is one. Nothing of borrador can be imported here.

The program may replace whatever it can reach. What decides about "passed" is therefore bound before it runs.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

# Everything else that audit hooks are told of is refused. https://docs.python.org/3/library/audit_events.html
_ALLOWED = frozenset(
    {
        "array.__new__",
        "builtins.id",
        "builtins.input",
        "code.__new__",
        "compile",
        "exec",
        "function.__new__",
        "import",
        "marshal.dumps",
        "marshal.loads",
        "object.__delattr__",
        "object.__getattr__",
        "object.__setattr__",
        "pickle.find_class",
        "sys._getframe",
        "sys._getframemodulename",
        "sys.excepthook",
        "sys.unraisablehook",
        "time.sleep",
    }
)
_READING = frozenset({"open", "os.listdir", "os.scandir"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# They reach the system without an event.
_FORBIDDEN_MODULES = frozenset({"_ctypes", "_posixsubprocess", "ctypes"})
_DETAIL_CHARACTERS = 200
_Said = tuple[str, str]


def main() -> NoReturn:
    """Do the job and end the process, whatever threads and handlers the program left."""
    job = json.load(sys.stdin)
    report = os.dup(1)
    _leave_nothing_open()
    _limit(job["limits"])
    secret = job["secret"].encode()
    judge = _prepare(job["program"], job["test"], job["entry_point"])
    write, leave = os.write, os._exit
    _end_after(job["limits"]["RLIMIT_CPU"] + 1, leave)
    del sys.modules["__main__"]
    _forbid(tuple(path + os.sep for path in sys.path))
    outcome, detail = judge()
    write(report, secret + f"{outcome}\n{detail}".encode("utf-8", "replace"))
    leave(0)


def _leave_nothing_open() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _limit(limits: dict[str, int]) -> None:
    for name, wanted in limits.items():
        number = getattr(resource, name)
        _, most = resource.getrlimit(number)
        value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(number, (value, value))


def _end_after(seconds: int, leave: Callable[[int], NoReturn]) -> None:
    """End by the clock too, even if the parent is gone. The first process of a namespace has to handle the signal."""
    signal.signal(signal.SIGALRM, lambda *_: leave(1))
    signal.alarm(seconds)


def _prepare(program: str, test: str, entry_point: str) -> Callable[[], _Said]:
    """The judge of a program."""
    execute, translate = exec, compile
    tests = translate(test, "<tests>", "exec")
    module = ModuleType("program")
    sys.modules["program"] = module
    namespace = vars(module)

    def run() -> None:
        execute(translate(program, "<program>", "exec"), namespace)
        candidate = namespace[entry_point]
        execute(tests, namespace)
        namespace["check"](candidate)

    def judge() -> _Said:
        try:
            run()
        except MemoryError:
            return "out of memory", ""
        except BaseException as error:  # noqa: BLE001 (whatever a program raises is its verdict)
            return _describe(error)
        return "passed", ""

    return judge


def _describe(error: BaseException) -> _Said:
    outcome = "failed" if isinstance(error, AssertionError) else "error"
    try:
        message = str(error)[:_DETAIL_CHARACTERS]
    except BaseException:  # noqa: BLE001 (its message is the program's too)
        message = ""
    name = type(error).__name__
    return outcome, f"{name}: {message}" if message else name


def _forbid(folders: tuple[str, ...]) -> None:
    """Refuse, for the rest of this process, all that writing a function does not need.

    Args:
        folders: those of the standard library, which may be read.
    """
    allowed, reading, writing, modules = _ALLOWED, _READING, _WRITING, _FORBIDDEN_MODULES
    refusal, text, kind = PermissionError, str, type

    def may_read(path: Any, flags: int) -> bool:
        return kind(path) is text and not flags & writing and ".." not in path and (path + "/").startswith(folders)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in reading:
            if not may_read(arguments[0], arguments[2] if event == "open" else 0):
                raise refusal(f"{event} is not allowed here")
        elif event not in allowed:
            raise refusal(f"{event} is not allowed here")
        elif event == "import" and arguments[0] in modules:
            raise refusal(f"import of {arguments[0]} is not allowed here")

    sys.addaudithook(watch)


if __name__ == "__main__":
    main()
