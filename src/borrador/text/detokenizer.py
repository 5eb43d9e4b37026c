"""Tokens to text as they arrive."""

from __future__ import annotations

import codecs

from borrador.text.tokenizer import Tokenizer


class Detokenizer:
    """Turns a stream of token ids into text, never cutting a UTF-8 character.

    The texts joined, `flush` included, equal `tokenizer.decode(ids, starts_text=starts_text)`.

    Args:
        starts_text: the stream is a whole text as `Tokenizer.encode` gives it; otherwise it continues a prompt.
    """

    def __init__(self, tokenizer: Tokenizer, *, starts_text: bool = False) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._drop_space = starts_text and tokenizer.add_space_prefix

    def push(self, token_id: int) -> str:
        """Text that is now certain; bytes of an incomplete character are held back."""
        data = self._tokenizer.token_bytes(token_id)
        if self._drop_space and data:
            data = data.removeprefix(b" ")
            self._drop_space = False
        return self._decoder.decode(data)

    def flush(self) -> str:
        """What is held back at the end of the stream: U+FFFD for an incomplete character, else nothing."""
        return self._decoder.decode(b"", final=True)
