from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from release.contents import faults_of_sdist, faults_of_wheel, package_files, sdist_files, wheel_files

ROOT = Path(__file__).parents[2]
PACKAGE = {"borrador/__init__.py", "borrador/py.typed", "borrador/server/static/page.html"}
WHEEL = [
    *PACKAGE,
    "borrador/_native.abi3.so",
    "borrador-0.1.0.dist-info/METADATA",
    "borrador-0.1.0.dist-info/licenses/LICENSE",
    "borrador-0.1.0.data/data/share/man/man1/borrador.1",
    "borrador-0.1.0.data/data/share/man/man1/borrador-run.1",
]
NATIVE = {"native/cpu.cpp", "native/kernels/avx2.cpp"}
SDIST = [
    *(f"src/{name}" for name in PACKAGE),
    *NATIVE,
    *("CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "man/borrador.1"),
    "tests/test_types.py",
]


def test_a_whole_wheel_and_a_whole_sdist_have_no_faults() -> None:
    assert faults_of_wheel(WHEEL, PACKAGE) == []
    assert faults_of_wheel([*WHEEL, "borrador.libs/libgomp-a1.so.1"], PACKAGE) == []
    assert faults_of_sdist(SDIST, PACKAGE, NATIVE) == []


@pytest.mark.parametrize(
    ("missing", "fault"),
    [
        ("borrador/server/static/page.html", "lacks borrador/server/static/page.html"),
        ("borrador/_native.abi3.so", "must hold one compiled module"),
        ("borrador-0.1.0.dist-info/licenses/LICENSE", "must hold its licence"),
        ("borrador-0.1.0.data/data/share/man/man1/borrador.1", "must hold the manual"),
    ],
)
def test_what_a_wheel_lacks_is_named(missing: str, fault: str) -> None:
    assert faults_of_wheel([name for name in WHEEL if name != missing], PACKAGE) == [fault]


@pytest.mark.parametrize(
    "stray",
    ["tests/test_types.py", "borrador/notes.txt", "native/cpu.cpp", "borrador/__pycache__/x.pyc", "include/engine.h"],
)
def test_what_does_not_belong_into_a_wheel_is_named(stray: str) -> None:
    assert faults_of_wheel([*WHEEL, stray], PACKAGE) == [f"must not hold {stray}"]


def test_two_compiled_modules_are_one_too_many() -> None:
    assert faults_of_wheel([*WHEEL, "borrador/_native.cpython-311.so"], PACKAGE) == ["must hold one compiled module"]


@pytest.mark.parametrize("missing", ["native/kernels/avx2.cpp", "LICENSE", "man/borrador.1", "src/borrador/py.typed"])
def test_what_an_sdist_lacks_is_named(missing: str) -> None:
    assert faults_of_sdist([name for name in SDIST if name != missing], PACKAGE, NATIVE) == [f"lacks {missing}"]


@pytest.mark.parametrize("stray", [".ci/run", "build/x.o", "shared/notes.md", "src/borrador/_native.so", "a.gguf"])
def test_what_does_not_belong_into_an_sdist_is_named(stray: str) -> None:
    assert faults_of_sdist([*SDIST, stray], PACKAGE, NATIVE) == [f"must not hold {stray}"]


def test_files_are_read_from_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("borrador/", "")
        wheel.writestr("borrador/x.py", "")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as sdist:
        sdist.addfile(tarfile.TarInfo("borrador-0.1.0/src/x.py"), io.BytesIO())
    assert wheel_files(tmp_path / "a.whl") == ["borrador/x.py"]
    assert sdist_files(tmp_path / "a.tar.gz") == ["src/x.py"]


def test_the_package_is_all_that_is_in_its_folder_but_what_is_compiled() -> None:
    files = package_files(ROOT / "src")
    assert {"borrador/__init__.py", "borrador/py.typed", "borrador/_native.pyi", "borrador/cli/doctor.py"} <= files
    assert not any(name.endswith((".so", ".pyc")) for name in files)
