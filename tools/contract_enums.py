"""The enums of the contract with their comments, for the tools that generate parts of the clients from them."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.descriptor_pb2 import EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "durablememory.v1"
REASONS = "ErrorReason"
_ENUM_FIELD, _VALUE_FIELD = 5, 2  # of FileDescriptorProto and EnumDescriptorProto


@dataclass(frozen=True)
class Enum:
    """An enum and its comment; `values` has the name without prefix and the comment of each but the zero value."""

    name: str
    comment: str
    values: list[tuple[str, str]]


def contract_enums() -> list[Enum]:
    """All enums, by file and place."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image.binpb"
        subprocess.run(["buf", "build", "--output", str(image)], check=True, cwd=ROOT)
        files = FileDescriptorSet.FromString(image.read_bytes()).file
    ours = sorted((file for file in files if file.package == PACKAGE), key=lambda file: file.name)
    return [_enum(file, index, enum) for file in ours for index, enum in enumerate(file.enum_type)]


def reasons(enums: list[Enum]) -> Enum:
    """The reasons of errors."""
    return next(enum for enum in enums if enum.name == REASONS)


def prose(comment: str) -> tuple[str, str]:
    """A comment up to its worked example, as one line; and the line of its metadata, empty if there is none."""
    stated = re.split(r"\n\s*\{", comment, maxsplit=1)[0]
    words = re.sub(r" Here: .*?(?= Metadata: |$)", "", " ".join(stated.split()))
    body, _, metadata = words.partition(" Metadata: ")
    return body, "" if metadata in ("", "none.") else f"Metadata: {metadata}"


def settle(files: Iterator[tuple[Path, str]], check: bool) -> list[Path]:
    """Write each text to its path, or only compare them. Returns the paths that differ and were not written."""
    wrong = []
    for path, text in files:
        current = path.read_text() if path.exists() else None
        if current == text:
            continue
        if check:
            wrong.append(path)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return wrong


def _enum(file: FileDescriptorProto, index: int, enum: EnumDescriptorProto) -> Enum:
    comments = {tuple(location.path): location.leading_comments for location in file.source_code_info.location}
    prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
    values = [
        (value.name.removeprefix(prefix), comments[_ENUM_FIELD, index, _VALUE_FIELD, place])
        for place, value in enumerate(enum.value)
        if value.number != 0
    ]
    return Enum(enum.name, comments[_ENUM_FIELD, index], values)
