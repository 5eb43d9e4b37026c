"""The commands of a chat: lines that begin with a slash."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from borrador.chat.chat import Chat
from borrador.chat.saved import SavedChat, load, save
from borrador.chat.settings import Drafting
from borrador.chat.summary import summarise
from borrador.errors import UsageError


class LeaveError(Exception):
    """The user wants to leave."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        usage: its name and what follows it.
        help: what it does.
        act: does it, given what followed.
    """

    usage: str
    help: str
    act: Callable[[Chat, str], None]

    @property
    def name(self) -> str:
        return self.usage.split()[0]


def run_command(chat: Chat, line: str) -> None:
    """Do what a line says that begins with a slash.

    Raises:
        UsageError: there is no such command, or what follows it is wrong.
        BorradorError: it could not be done.
        LeaveError: the user wants to leave.
    """
    name, *rest = line.split(maxsplit=1)
    command = next((each for each in COMMANDS if each.name == name), None)
    if command is None:
        near = difflib.get_close_matches(name, [each.name for each in COMMANDS], 1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"there is no command {name!r:.40}", f"{guess}/help lists them; a space before the slash makes it text."
        )
    command.act(chat, "".join(rest).strip())


def _help(chat: Chat, _: str) -> None:
    width = max(len(command.usage) for command in COMMANDS)
    lines = [f"{command.usage:<{width}}  {command.help}" for command in COMMANDS]
    lines.append('""" begins a question of several lines, and """ ends it; so does Alt-Enter between its lines.')
    lines.append("Ctrl-C stops an answer, Ctrl-C again leaves; so does Ctrl-D.")
    chat.screen.say("\n".join(lines), style="")


def _clear(chat: Chat, _: str) -> None:
    chat.conversation.exchanges.clear()
    chat.screen.note("a new conversation")


def _regenerate(chat: Chat, _: str) -> None:
    chat.regenerate()


def _stats(chat: Chat, _: str) -> None:
    chat.screen.say("\n".join(summarise(chat)), style="")


def _set(chat: Chat, words: str) -> None:
    name, _, value = words.partition(" ")
    if value:
        chat.settings = chat.settings.with_value(name, value.strip())
    elif name:
        raise UsageError(f"/set needs a value for {name!r:.40}", f"For example: /set {name} default.")
    values = chat.settings.as_json()
    shown = {name.replace("-", "_")} if value else values.keys() - {"draft"}
    chat.screen.say("\n".join(f"{each} = {values[each]}" for each in values if each in shown), style="")


def _system(chat: Chat, text: str) -> None:
    if text:
        chat.conversation.system = None if text == "-" else text
    system = chat.conversation.system
    chat.screen.say("no system message" if system is None else f"system message: {system}", style="")


def _draft(chat: Chat, words: str) -> None:
    if words:
        chat.settings = replace(chat.settings, drafting=Drafting.parse(words))
    chat.screen.say(f"drafting is {chat.settings.drafting}", style="")


def _color(chat: Chat, word: str) -> None:
    if word not in ("on", "off"):
        raise UsageError(f"colours are on or off, got {word!r:.40}", "For example: /color on.")
    if word == "on" and not chat.screen.can_colour:
        raise UsageError("colours need a terminal, and answers go elsewhere", "Leave them off.")
    if word == "on" and not chat.backend.tells_origins:
        raise UsageError("this server does not say where tokens come from", "Colours work with a borrador server.")
    chat.screen.coloured = word == "on"
    how = "underlined, and green where there is colour" if word == "on" else "shown like others"
    chat.screen.note(f"accepted tokens of drafts are {how}")


def _save(chat: Chat, name: str) -> None:
    path = save(_file("/save", name), SavedChat(chat.conversation, chat.settings), chat.backend.name)
    chat.screen.note(f"saved in {path}")


def _load(chat: Chat, name: str) -> None:
    loaded = load(_file("/load", name), chat.settings)
    chat.settings = loaded.settings
    chat.conversation = loaded.conversation
    count = len(loaded.conversation.exchanges)
    chat.screen.note(f"loaded {count} question{'' if count == 1 else 's'} with answers, and the settings")


def _exit(_: Chat, __: str) -> None:
    raise LeaveError


def _file(command: str, name: str) -> str:
    if not name:
        raise UsageError(f"{command} needs a file, and none is named", f"For example: {command} chat.json.")
    return name


COMMANDS = (
    Command("/help", "List these commands.", _help),
    Command("/clear", "Begin a new conversation.", _clear),
    Command("/regen", "Write the last answer again.", _regenerate),
    Command("/stats", "Say what the answers cost so far.", _stats),
    Command("/set [NAME VALUE]", "Change a sampling parameter, or list them.", _set),
    Command("/system [TEXT|-]", "Set the system message, remove it, or show it.", _system),
    Command("/draft [on [N]|off|auto]", "Draft N tokens each round, none, or as many as pay.", _draft),
    Command("/color on|off", "Show which tokens were drafted.", _color),
    Command("/save FILE", "Keep the conversation and the settings.", _save),
    Command("/load FILE", "Go on with a conversation that was kept.", _load),
    Command("/exit", "Leave.", _exit),
)
