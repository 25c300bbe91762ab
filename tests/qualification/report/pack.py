"""The report pack: `report.json`, `report.html`, `MANIFEST.json`; and `HYGIENE_OK` if a scan of all found nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.qualification.checks.hygiene import Scanned, Traces, scan
from tests.qualification.report.page import page
from tests.qualification.report.report import Report

REPORT_JSON: Final = "report.json"
REPORT_HTML: Final = "report.html"
MANIFEST: Final = "MANIFEST.json"
HYGIENE_OK: Final = "HYGIENE_OK"
FILES: Final = (REPORT_JSON, REPORT_HTML, MANIFEST)


def write(folder: Path, report: Report) -> Sequence[Path]:
    """Write the pack without `HYGIENE_OK`, which is for `sign` to write; return its files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HYGIENE_OK).unlink(missing_ok=True)
    (folder / REPORT_JSON).write_text(report.as_json(), "utf-8")
    (folder / REPORT_HTML).write_text(page(report), "utf-8")
    listed = {name: _described(folder / name) for name in (REPORT_JSON, REPORT_HTML)}
    (folder / MANIFEST).write_text(json.dumps({"schema": 1, "files": listed}, indent=1) + "\n", "utf-8")
    return [folder / name for name in FILES]


def sign(folder: Path, traces: Traces) -> Scanned:
    """Scan the bytes of the pack as they are on the disk now, with everything else that the run left; write
    `HYGIENE_OK` if nothing is found."""
    found = scan(traces | Traces(files=[folder / name for name in FILES]))
    if not found.problems:
        manifest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
        (folder / HYGIENE_OK).write_text(
            f"no credential, no memory and no question in {found.files} files, {found.bytes} bytes\n"
            f"MANIFEST.json sha256:{manifest}\n",
            "utf-8",
        )
    return found


def _described(path: Path) -> dict[str, str | int]:
    content = path.read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
