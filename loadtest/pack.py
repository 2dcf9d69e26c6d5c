"""Packs load.py and its package into one zip that Python runs: `python3 loadtest/pack.py load.pyz`.

The same sources make the same bytes, on every machine, so that a ConfigMap made from the file only changes
when the load generator does.
"""

import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EPOCH = (1980, 1, 1, 0, 0, 0)
READABLE = 0o644 << 16
USAGE = "usage: python3 loadtest/pack.py OUT (for example load.pyz; then: python3 load.pyz --help)"


def pack(target: Path) -> Path:
    """Writes the zip to `target` and returns it.

    Raises:
        OSError: when `target` cannot be written.
    """
    sources = {"__main__.py": HERE / "load.py"}
    for path in sorted((HERE / "loadgen").glob("*.py")):
        sources[f"loadgen/{path.name}"] = path
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sources.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is packed
            entry.external_attr = READABLE
            archive.writestr(entry, path.read_bytes())
    return target


def main(arguments: list[str]) -> int:
    """Runs the command line; returns its exit code."""
    if arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        target = pack(Path(arguments[0]))
    except OSError as error:
        print(
            f"pack: cannot write {arguments[0]}: {error.strerror}: name a file in a folder that exists",
            file=sys.stderr,
        )
        return 2
    print(f"{target} {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
