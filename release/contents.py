"""What a wheel and an sdist must hold, and must not."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_BUILT = (".pyc", ".so", ".pyd")
_EXTENSION = re.compile(r"borrador/_native\.[\w.-]+\.(so|pyd)")
_MANUAL = re.compile(r"borrador-[^/]+\.data/data/share/man/man1/borrador[a-z-]*\.1")
_METADATA = re.compile(r"borrador-[^/]+\.dist-info/([\w.-]+|licenses/LICENSE|sboms/[\w.-]+)")
_LIBRARY = re.compile(r"borrador\.libs/[\w.-]+")  # what auditwheel had to bring along
_IN_SDIST = ("CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO", "man/borrador.1")
_NOT_IN_SDIST = (".ci", ".github", ".git", "build", "dist", "shared", ".venv")


def wheel_files(wheel: Path) -> list[str]:
    """The names of its files."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(name for name in archive.namelist() if not name.endswith("/"))


def sdist_files(sdist: Path) -> list[str]:
    """The names of its files, below its one folder."""
    with tarfile.open(sdist) as archive:
        names = [PurePosixPath(member.name) for member in archive.getmembers() if member.isfile()]
    return sorted(str(PurePosixPath(*name.parts[1:])) for name in names)


def package_files(source: Path) -> set[str]:
    """Files of the package that a wheel holds besides what is compiled. `source` is the folder above it."""
    found = (path for path in (source / "borrador").rglob("*") if path.is_file() and path.suffix not in _BUILT)
    return {path.relative_to(source).as_posix() for path in found}


def faults_of_wheel(files: Iterable[str], package: set[str]) -> list[str]:
    """In words what is wrong with a wheel of these files; nothing where all is well.

    Args:
        files: of the wheel.
        package: as `package_files` gives them.
    """
    files = set(files)
    faults = [f"lacks {name}" for name in sorted(package - files)]
    others = files - package
    expected = (_EXTENSION, _MANUAL, _METADATA, _LIBRARY)
    faults += [f"must not hold {name}" for name in sorted(others) if not any(kind.fullmatch(name) for kind in expected)]
    counts = {
        "one compiled module": sum(1 for name in others if _EXTENSION.fullmatch(name)) == 1,
        "the manual": any(name.endswith("/man1/borrador.1") for name in others),
        "its licence": any(name.endswith("licenses/LICENSE") for name in others),
        "py.typed": "borrador/py.typed" in files,
    }
    return faults + [f"must hold {what}" for what, held in counts.items() if not held]


def faults_of_sdist(files: Iterable[str], package: set[str], native: set[str]) -> list[str]:
    """In words what is wrong with an sdist of these files.

    Args:
        files: of the sdist.
        package: as `package_files` gives them.
        native: the names of the native sources, with their folder.
    """
    files = set(files)
    needed = {*_IN_SDIST, *(f"src/{name}" for name in package), *native}
    faults = [f"lacks {name}" for name in sorted(needed - files)]
    strays = (
        name for name in sorted(files) if name.split("/")[0] in _NOT_IN_SDIST or name.endswith((*_BUILT, ".gguf"))
    )
    return faults + [f"must not hold {name}" for name in strays]
