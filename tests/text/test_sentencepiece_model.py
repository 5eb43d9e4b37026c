"""What is written is what the library reads."""

from __future__ import annotations

from sentencepiece import SentencePieceProcessor

from borrador.text.sentencepiece_model import write_model
from borrador.text.vocabulary import TokenKind

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def test_pieces_come_back_with_their_scores_and_kinds() -> None:
    lengths = [1, 2, 100, 127, 128, 129, 7999]  # one byte tells lengths below 128
    texts = ["é", *("a" * length for length in lengths), "<s>", "<unk>"]
    scores = [-1.5, *map(float, lengths), -0.25, 2.0**-30]
    kinds = [TokenKind.NORMAL] * 8 + [TokenKind.CONTROL, TokenKind.UNKNOWN]
    read = SentencePieceProcessor(model_proto=write_model(texts, scores, kinds, byte_fallback=False))
    ids = list(range(len(texts)))
    assert read.id_to_piece(ids) == texts
    assert read.get_score(ids) == scores
    assert [read.is_control(i) for i in ids] == [False] * 8 + [True, False]
    assert read.unk_id() == 9


def test_text_is_left_as_it_is_but_for_its_spaces() -> None:
    kinds = [TokenKind.BYTE] * 256 + [TokenKind.NORMAL, TokenKind.UNKNOWN]
    model = write_model([*BYTES, "▁", "<unk>"], [0.0] * 258, kinds, byte_fallback=True)
    read = SentencePieceProcessor(model_proto=model)
    assert read.encode("  a\u0301 ﬁ\t ") == [256, 256, *"a\u0301".encode(), 256, *"ﬁ\t".encode(), 256]
