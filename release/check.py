"""Tries what is to be published, away from the source tree: contents, a build from the sdist, an installed wheel.

python -m release.check DIST
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from release.contents import faults_of_sdist, faults_of_wheel, package_files, sdist_files, wheel_files

from borrador import __version__

ROOT = Path(__file__).parents[1]
_PROMPT = "Write the numbers from one to five:"
_TOKENS = "24"


class CheckError(Exception):
    """Something must not be published."""


def check(dist: Path) -> None:
    """Check the one wheel and the one sdist of a folder. Raises CheckError where something is wrong."""
    dist = dist.resolve()
    wheel, sdist = _only(dist, "borrador-*.whl"), _only(dist, "borrador-*.tar.gz")
    _say(f"contents of {wheel.name} and {sdist.name}")
    package = package_files(ROOT / "src")
    _refuse(wheel.name, faults_of_wheel(wheel_files(wheel), package))
    _refuse(sdist.name, faults_of_sdist(sdist_files(sdist), package, _native_files()))
    with tempfile.TemporaryDirectory(prefix="borrador-check-") as folder:
        place = Path(folder)
        _check_manual(wheel, place)
        _say("a wheel from the sdist")
        rebuilt = build_from(sdist, place)
        _refuse(rebuilt.name, faults_of_wheel(wheel_files(rebuilt), package))
        _say(f"{wheel.name} in an environment of its own")
        _try_program(install(wheel, place), place)
    _say(f"{wheel.name} and {sdist.name} can be published")


def build_from(sdist: Path, place: Path) -> Path:
    """A wheel, built from the unpacked sdist without optimisation, which takes a fraction of the time."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "source", filter="data")
    source = _only(place / "source", "borrador-*")
    _run(
        [*_pip(sys.executable), "wheel", "--no-build-isolation", "--no-deps", "-C", "cmake.build-type=Debug"],
        ["-w", str(place / "rebuilt"), str(source)],
        folder=place,
    )
    return _only(place / "rebuilt", "*.whl")


def install(wheel: Path, place: Path) -> Path:
    """Install a wheel with what it depends on, and nothing else. Returns the folder of its programs."""
    venv.create(place / "venv", with_pip=True)
    programs = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
    _run([*_pip(str(programs / "python")), "install", str(wheel)], folder=place)
    return programs


def _try_program(programs: Path, place: Path) -> None:
    """Version, doctor and an answer, which must be the one that the program of the source tree writes."""
    program = str(programs / "borrador")
    version = _run([program, "--version"], folder=place).strip()
    if version != f"borrador {__version__}":
        raise CheckError(f"--version says {version!r}, the source is {__version__}")
    report = json.loads(_run([program, "doctor", "--json"], folder=place))
    if not report["can_run"] or set(report["software"]["missing_extras"]) != {"plot", "server"}:
        raise CheckError(f"doctor says {report['obstacles']}, extras {report['software']['missing_extras']}")
    writing = ["run", "-q", "--no-profile", "--raw", "-n", _TOKENS, _PROMPT]
    answer = _run([program, *writing], folder=place)
    expected = _run([sys.executable, "-m", "borrador", *writing, "-d", "none"], folder=place)
    if answer != expected or not answer.strip():
        raise CheckError(f"the installed program wrote {answer!r}, plain decoding here {expected!r}")
    if not (programs.parent / "share" / "man" / "man1" / "borrador.1").is_file():
        raise CheckError("the manual was not installed")


def _check_manual(wheel: Path, place: Path) -> None:
    """Every page of the wheel is set without a warning."""
    if shutil.which("groff") is None:
        raise CheckError("groff is not installed; it sets the manual pages")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        shutil.unpack_archive(wheel, folder, "zip")
        for page in sorted(Path(folder).glob("*.data/data/share/man/man1/*.1")):
            done = subprocess.run(
                ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], capture_output=True, text=True, check=False
            )
            if done.returncode or done.stderr:
                raise CheckError(f"{page.name}: {done.stderr.strip()}")


def _native_files() -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / "native").rglob("*") if path.is_file()}


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise CheckError(f"{folder} must hold one {pattern}, and holds {len(found)}")
    return found[0]


def _refuse(name: str, faults: Sequence[str]) -> None:
    if faults:
        raise CheckError(f"{name} {'; '.join(faults)}")


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]


def _run(*words: Sequence[str], folder: Path) -> str:
    """Run a command outside the source tree. Returns its standard output."""
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [word for part in words for word in part]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _say(what: str) -> None:
    print(f"== {what}", flush=True)


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except CheckError as error:
        sys.exit(f"error: {error}")
