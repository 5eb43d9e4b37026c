"""The program `borrador`: answers `--version` at once; whatever goes wrong is one sentence and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence

from borrador import __version__
from borrador.errors import BorradorError, MemoryLimitError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 ok, 1 runtime error, 2 usage, 3 model missing or bad file, 4 out of memory, 5 verification failed,
        130 interrupted.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _dispatch(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _abandon_output()
    except BorradorError as error:
        return _report(error)
    except MemoryError:
        return _report(MemoryLimitError("the computer has no memory left", "Use a smaller model or --context."))
    except OSError as error:
        return _report(_describe_os_error(error))
    except Exception as error:  # noqa: BLE001 (the last line of defence: a user never sees a traceback)
        return _report(_describe_unexpected(error))


def _dispatch(words: Sequence[str]) -> int:
    code = 0
    if list(words) in (["--version"], ["-V"]) and sys.stdout is not None:
        sys.stdout.write(f"borrador {__version__}\n")
    else:
        code = _run_command(words)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _run_command(words: Sequence[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        from borrador.cli.app import run_app
    except ImportError as error:
        raise BorradorError(
            f"borrador is not installed correctly: {error}",
            "Install it again, for this Python and this machine: pip install --force-reinstall borrador",
        ) from error
    return run_app(words)


def _report(error: BorradorError) -> int:
    if os.environ.get("BORRADOR_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    with contextlib.suppress(OSError):
        _write_error("error", str(error), "1;31")
        if error.hint:
            _write_error("hint", error.hint, "1;36")
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _abandon_output()
    return error.exit_code


def _write_error(label: str, sentence: str, style: str) -> None:
    if sys.stderr is None:
        return
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    start, end = (f"\x1b[{style}m", "\x1b[0m") if coloured else ("", "")
    # A file's name may hold control characters; they must reach neither the terminal nor the line structure.
    printable = "".join(character if character.isprintable() else " " for character in sentence)
    sys.stderr.write(f"{start}{label}:{end} {printable.encode('utf-8', 'replace').decode()}\n")


def _abandon_output() -> int:
    """Nobody reads standard output any more; Python must not fail again when it flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _describe_os_error(error: OSError) -> BorradorError:
    place = f" ({error.filename})" if error.filename else ""
    message = f"the system refused an operation: {error.strerror or error}{place}"
    wrapped = BorradorError(message, "Check that the disk has room and allows it; BORRADOR_DEBUG=1 shows where.")
    wrapped.__cause__ = error
    return wrapped


def _describe_unexpected(error: Exception) -> BorradorError:
    detail = " ".join(str(error).split())
    message = f"internal error, {type(error).__name__}{': ' + detail if detail else ''}"
    wrapped = BorradorError(message, "Set BORRADOR_DEBUG=1 to see where it happened, and report it.")
    wrapped.__cause__ = error
    return wrapped


if __name__ == "__main__":
    sys.exit(main())
