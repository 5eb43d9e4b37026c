from __future__ import annotations

import re

from website import commands


def test_every_command_has_a_section_with_its_usage_and_options() -> None:
    page = commands.render()
    run = page.partition("## `borrador run`\n")[2].partition("\n## ")[0]
    assert "borrador run [OPTIONS] [PROMPT]" in run
    assert (
        "| `-m, --model MODEL` | Catalogue name, path, or hf:OWNER/REPO/FILE.gguf. \\[default: smollm2-135m] |" in run
    )
    assert "### `borrador history clear`\n" in page


def test_cells_are_shown_as_they_are_written() -> None:
    assert commands.text_cell("a <b> | c\n  [d] *e*") == "a &lt;b&gt; \\| c \\[d] \\*e\\*"
    assert commands.code_cell("--draft-shortlist N|auto") == "<code>--draft-shortlist N&#124;auto</code>"


def test_tables_have_as_many_cells_in_every_row() -> None:
    rows = [line for line in commands.render().splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
