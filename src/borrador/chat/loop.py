"""The loop of a chat: an utterance, an answer."""

from __future__ import annotations

from borrador.chat.chat import Chat
from borrador.chat.commands import LeaveError, run_command
from borrador.chat.lines import Lines
from borrador.errors import BorradorError


def talk(chat: Chat, lines: Lines, *, interactive: bool) -> None:
    """Answer until there are no more questions, or the user leaves.

    Args:
        chat: answers.
        lines: what the user says.
        interactive: errors are told, and Ctrl-C stops what is being done and leaves only when it comes again;
            otherwise both end the chat.

    Raises:
        KeyboardInterrupt: the user left by Ctrl-C.
        BorradorError: something failed, and the chat is not interactive.
    """
    interrupted = False
    while True:
        try:
            utterance = lines.read()
        except EOFError:
            return
        except KeyboardInterrupt:
            if interrupted or not interactive:
                raise
            interrupted = True
            chat.screen.note("Ctrl-C again leaves")
            continue
        try:
            interrupted = _respond(chat, utterance)
        except LeaveError:
            return
        except BorradorError as error:
            if not interactive:
                raise
            interrupted = False
            chat.screen.error(error)
        if interrupted and not interactive:
            raise KeyboardInterrupt


def _respond(chat: Chat, utterance: str) -> bool:
    """True where the user interrupted it."""
    chat.stopped = False
    try:
        if utterance.startswith("/"):
            run_command(chat, utterance)
        elif utterance.strip():
            chat.ask(utterance)
    except KeyboardInterrupt:
        return True
    return chat.stopped
