"""The wheel installs where there is no Rust, and the examples run there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import examples, printed

#: Examples that need nothing but the package.
ALONE = [
    (place, text)
    for place, text in examples("python")
    if not any(word in text for word in ("fastapi", "flask", "django", "redis://", "http://"))
]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A fresh environment with the wheel, and nothing else in the path."""
    [wheel] = (Path(sys.prefix).parent / "wheels").glob("*.whl")
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-index", wheel)
    return python


def run(python, *arguments):
    environment = {"PATH": str(python.parent), "HOME": str(python.parent)}
    command = [python, "-I", *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=python.parent)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_no_rust_and_no_other_package_is_needed(python):
    assert not os.path.exists(python.parent / "cargo")
    listed = run(python, "-m", "pip", "list", "--format", "freeze").split()
    assert {name.split("==")[0] for name in listed} - {"pip", "setuptools"} == {"spillgate"}


def test_every_module_imports_without_other_packages(python):
    for module in ("asgi", "wsgi", "decorators", "client", "errors", "types"):
        run(python, "-c", f"import spillgate.{module}")


def test_without_limits_its_storage_says_what_is_missing(python):
    result = subprocess.run([python, "-I", "-c", "import spillgate.limits"], capture_output=True, text=True)
    assert "No module named 'limits'" in result.stderr


@pytest.mark.parametrize(("place", "text"), ALONE, ids=lambda value: value.split("\n")[0])
def test_example(python, place, text, tmp_path):
    file = tmp_path / "example.py"
    file.write_text(text)
    assert run(python, file).splitlines() == printed(text)


def test_types_are_found_by_a_checker(python, tmp_path):
    file = tmp_path / "typed.py"
    file.write_text("from spillgate import Limiter\nreveal_type(Limiter('1/s').allow('k'))\n")
    command = [sys.executable, "-m", "mypy", "--python-executable", python, "--strict", file]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert 'Revealed type is "bool"' in result.stdout and result.returncode == 0, result.stdout
