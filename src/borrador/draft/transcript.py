"""One text in the tokens of two vocabularies, kept in step while it grows."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from borrador.text.tokenizer import Tokenizer

_LONG_TAIL = 256  # characters that are encoded again with every addition, at most about twice as many
_OPEN_END = 64  # of them stay open when the rest is settled, since what follows may change their tokens
_LEFT_TOKENS = 8


class Transcript:
    """A text that is written in one vocabulary and read in another.

    Control tokens, which have no text, are carried over by their name; one that ends an answer becomes the other
    vocabulary's end of text where it has none of that name; others are left out. A tail of the text is encoded anew
    when it grows, so that the work per token does not depend on the text's length; settled tokens never change.

    Args:
        written: tokenizer of the tokens that are given.
        read: tokenizer of the tokens that are wanted.

    Attributes:
        tokens: the text in the vocabulary that is read, but for `pending`.
        settled: so many of these tokens will not change any more.
    """

    def __init__(self, written: Tokenizer, read: Tokenizer) -> None:
        self._written = written
        self._read = read
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        bos = self._read.bos_id
        self.tokens: list[int] = [bos] if self._read.add_bos and bos is not None else []
        self.settled = len(self.tokens)
        self.length = 0
        self._tail = ""
        self._begins = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def pending(self) -> bytes:
        """The beginning of a character that is not complete yet; it is not in `tokens`."""
        return self._decoder.getstate()[0]

    def follow(self, context: Sequence[int]) -> int:
        """Bring the text up to date with a context that continues the last one, or is shorter.

        Returns:
            How many of the tokens before are still there, unchanged.
        """
        if len(context) < self.length:
            self.restart()
            self.follow(context)
            return 0
        kept = self.settled
        del self.tokens[kept:]
        for token in context[self.length :]:
            if self._written.is_control(token):
                self._close(counterpart(token, self._written, self._read))
            else:
                self._tail += self._decoder.decode(self._written.token_bytes(token))
        self.length = len(context)
        self._settle_beginning()
        self.tokens += self._encode(self._tail)
        return kept

    def _close(self, control: int | None) -> None:
        """Settle what was written before a control token, and the token."""
        self._tail += self._decoder.decode(b"", final=True)
        self._settle(self._tail)
        self._tail = ""
        if control is not None and (control != self._read.bos_id or self.tokens != [control]):
            self.tokens.append(control)
        self.settled = len(self.tokens)

    def _settle_beginning(self) -> None:
        """Settle the tail but for its end where it is long, if possible between two words."""
        if len(self._tail) <= _LONG_TAIL:
            return
        last = len(self._tail) - _OPEN_END
        cut = max(self._tail.rfind(" ", 0, last), self._tail.rfind("\n", 0, last), 0)
        while cut and self._tail[cut - 1] in " \n":
            cut -= 1
        if not cut and len(self._tail) > 2 * _LONG_TAIL:
            cut = last
        self._settle(self._tail[:cut])
        self._tail = self._tail[cut:]
        self.settled = len(self.tokens)

    def _settle(self, text: str) -> None:
        self.tokens += self._encode(text)
        self._begins = self._begins and not text

    def _encode(self, text: str) -> list[int]:
        return self._read.encode(text, specials=False, starts_text=self._begins) if text else []


def counterpart(token: int, of: Tokenizer, within: Tokenizer) -> int | None:
    """The control token of another vocabulary that means the same; None where it has none."""
    same = within.control_id(of.token_text(token))
    return within.eos_id if same is None and token in of.eog_ids else same


def continue_with(data: bytes, context: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The tokens of a text that follows a context, as one writes them who has written its tokens.

    Args:
        data: the text; where the context ends within a character it goes on with it. An incomplete last character is
            left out, and so is everything from the first byte on that is no text.
        context: tokens of the text so far.
        tokenizer: of both.

    Returns:
        Tokens that spell `data`; none where they would have to begin within a token of the context.
    """
    for left in _beginnings(context, tokenizer):
        ids = tokenizer.encode(_whole(left + data), specials=False, starts_text=False)
        begin = _boundary(ids, len(left), tokenizer)
        if begin is not None:
            return ids[begin:]
    return []


def _beginnings(context: Sequence[int], tokenizer: Tokenizer) -> list[bytes]:
    """The bytes of a few last tokens of the context from a character's first on, and nothing, where that is one too."""
    left = b""
    for token in reversed(context[-_LEFT_TOKENS:]):
        if tokenizer.is_control(token):
            break
        left = tokenizer.token_bytes(token) + left
    while left and left[0] & 0xC0 == 0x80:
        left = left[1:]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(left)
    return [left] if decoder.getstate()[0] or not left else [left, b""]


def _whole(data: bytes) -> str:
    """Bytes as text, as far as they are, and without an incomplete last character."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError as error:
        return data[: error.start].decode()


def _boundary(ids: Sequence[int], length: int, tokenizer: Tokenizer) -> int | None:
    """The first of the tokens behind so many bytes; None where one of them lies across."""
    for index, token in enumerate(ids):
        if length <= 0:
            return index if length == 0 else None
        length -= len(tokenizer.token_bytes(token))
    return None
