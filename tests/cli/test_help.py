from __future__ import annotations

import re

import pytest
from tests.cli.conftest import Borrador

from borrador import __version__

ENGINE_OPTIONS = {"-m", "--model", "-d", "--draft", "--draft-tokens", "--draft-shortlist", "--draft-weights"} | {
    "--threads",
    "--context",
    "--profile",
    "--no-profile",
}
OPTIONS = {
    (): {"-V", "--version", "--install-completion", "--show-completion"},
    ("run",): ENGINE_OPTIONS
    | {"-n", "--max-tokens", "-s", "--system", "--raw", "--temperature", "--temp", "--top-k", "--top-p", "--min-p"}
    | {"--typical-p", "--repetition-penalty", "--repeat-penalty", "--presence-penalty", "--frequency-penalty"}
    | {"--penalty-window", "--repeat-last-n", "--logit-bias", "--allow-token", "--ban-token", "--stop-token"}
    | {"--min-tokens", "--ignore-eos", "--logprobs"}
    | {"--seed", "--n", "--acceptance", "--lenience", "--stop", "--json-schema", "--regex", "--grammar"}
    | {"--json", "-q", "--quiet", "--trace", "--explain", "--history"},
    ("chat",): ENGINE_OPTIONS
    | {"--url", "--api-key", "--model-name", "--history", "-n", "--max-tokens", "-s", "--system", "--temperature"}
    | {"--temp", "--top-k", "--top-p", "--min-p", "--typical-p", "--repetition-penalty", "--repeat-penalty"}
    | {"--presence-penalty", "--frequency-penalty", "--penalty-window", "--repeat-last-n", "--seed", "--acceptance"}
    | {"--stop", "--input-history", "--no-input-history", "-q", "--quiet"},
    ("serve",): ENGINE_OPTIONS
    | {"--history", "--host", "--port", "--alias", "--api-key", "--api-key-file", "--insecure", "--allowed-origin"}
    | {
        "--allowed-host",
        "--concurrent",
        "--waiting",
        "--cache-bytes",
        "--timeout",
        "--drain",
        "--stream-pacing",
        "--pacing-interval",
    }
    | {"-q", "--quiet"},
    ("history",): set(),
    ("history", "list"): {"--json"},
    ("history", "clear"): set(),
    ("pull",): {"-q", "--quiet"},
    ("list",): {"--json"},
    ("show",): {"--json"},
    ("rows",): {"-m", "--model", "--repeats", "--context-tokens", "--plot", "--threads", "--json", "-q", "--quiet"},
    ("doctor",): {"-m", "--model", "--json"},
    ("verify",): {"-m", "--model", "-d", "--draft", "--prompts", "--quick", "--threads", "--break-residual"}
    | {"--json", "-q", "--quiet"},
    ("bench",): ENGINE_OPTIONS
    | {"--history", "--prompts", "--per-task", "--repeats", "-n", "--max-tokens", "--temperature", "--temp", "--seed"}
    | {"--start", "--save", "--report", "--score", "--json", "-q", "--quiet"}
    | {"--url", "--api-key", "--model-name", "--concurrency", "--requests"},
    ("bench", "compare"): {"--json"},
    ("bench", "report"): {"-o", "--output", "-q", "--quiet"},
    ("plan",): {"-m", "--model", "-d", "--draft", "--prompts", "--per-task", "-n", "--max-tokens", "--threads"}
    | {"--context", "--save", "--no-save", "--json", "-q", "--quiet"},
}
COMMANDS = ["run", "chat", "serve", "pull", "list", "show", "rows", "doctor", "plan", "verify", "bench", "history"]


@pytest.mark.parametrize("words", OPTIONS)
def test_help_lists_every_option_of_the_command(borrador: Borrador, words: tuple[str, ...]) -> None:
    result = borrador(*words, "--help")
    heads = re.findall(r"^  (-[^ ].*?)(?:  |$)", result.out, re.MULTILINE)
    listed = {option for head in heads for option in re.findall(r"--?[a-zA-Z][a-z-]*", head)}
    assert (result.code, result.err) == (0, "")
    assert listed == OPTIONS[words] | {"-h", "--help"}


def test_program_without_a_command_shows_its_commands(borrador: Borrador) -> None:
    result = borrador()
    listed = re.findall(r"^  ([a-z]+)  ", result.out.split("Commands:")[1], re.MULTILINE)
    assert (result.code, listed) == (0, COMMANDS)


@pytest.mark.parametrize("words", [("--version",), ("-V",)])
def test_version(borrador: Borrador, words: tuple[str, ...]) -> None:
    assert borrador(*words).out == f"borrador {__version__}\n"


def test_unknown_command_is_a_usage_error(borrador: Borrador) -> None:
    result = borrador("rum")
    assert (result.code, result.out) == (2, "")
    assert "'rum'" in result.err


def test_defaults_in_help_are_those_of_the_library(borrador: Borrador) -> None:
    shown = " ".join(borrador("run", "--help").out.split())
    assert "-n, --max-tokens N Maximum tokens to write. [default: 512]" in shown
    assert "[default: smollm2-135m]" in shown
