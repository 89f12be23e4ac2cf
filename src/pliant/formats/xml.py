"""XML from outside, read with limits and written back one element per line.

MuJoCo names the line of a mistake in the text it was given. That text is ours (includes resolved, references
rewritten), so every element remembers the file and line it came from and `write` returns the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from pliant.errors import FormatError

__all__ = ["MAX_BYTES", "Node", "parse", "unescape", "write"]

MAX_BYTES = 50_000_000
MAX_DEPTH = 500
MAX_NODES = 1_000_000
MAX_ATTRIBUTES = 200  # of one element; readers compare each with all others
# Control characters are not allowed in XML; written as spaces, they can do no harm. A percent sign can: MuJoCo 4.0
# passes some names to printf as the format. A private character stands for it on the way through.
_PERCENT = "\ue025"
_HARMLESS = dict.fromkeys((*range(32), 65534, 65535, *range(55296, 57344)), " ") | {ord("%"): _PERCENT}


@dataclass(eq=False)
class Node:
    """One element, with its file and line. Text between elements carries no meaning in MJCF and URDF."""

    tag: str
    attrib: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    file: Path = Path()
    line: int = 0

    def iter(self) -> Iterator[Node]:
        """This node and everything below it, in document order."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, tag: str) -> list[Node]:
        """The direct children of that tag."""
        return [child for child in self.children if child.tag == tag]

    def get(self, key: str, default: str = "") -> str:
        """An attribute."""
        return self.attrib.get(key, default)

    def where(self) -> str:
        """File and line, for messages."""
        return f"'{self.file}', line {self.line}"


def parse(data: bytes, path: Path) -> Node:
    """The root element of an XML file.

    Raises:
        FormatError: it is not well-formed, declares a document type (entities), or is too large or too deep.
    """
    if len(data) > MAX_BYTES:
        raise FormatError(f"'{path}' has {len(data)} bytes; model files may have at most {MAX_BYTES}")
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Node] = []
    roots: list[Node] = []
    count = 0

    def start(tag: str, attrib: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) >= MAX_DEPTH or count > MAX_NODES:
            raise FormatError(
                f"'{path}', line {parser.CurrentLineNumber}: more than {MAX_DEPTH} levels or {MAX_NODES} elements"
            )
        if len(attrib) > MAX_ATTRIBUTES:
            raise FormatError(
                f"'{path}', line {parser.CurrentLineNumber}: <{tag:.40}> has {len(attrib)} attributes; "
                f"at most {MAX_ATTRIBUTES} are accepted"
            )
        node = Node(tag, attrib, file=path, line=parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(node)
        stack.append(node)

    def end(_: str) -> None:
        stack.pop()

    def refuse(*_: object) -> int:
        raise FormatError(
            f"'{path}', line {parser.CurrentLineNumber}: document types and entities are not accepted; "
            "remove the <!DOCTYPE ...> declaration"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise FormatError(f"'{path}', line {error.lineno}: not well-formed XML ({reason})") from None
    except FormatError:
        raise
    except (ValueError, LookupError) as error:  # an encoding that is unknown or does not fit
        raise FormatError(f"'{path}': the text cannot be decoded ({error})") from None
    return roots[0]


def write(root: Node) -> tuple[str, list[Node]]:
    """The tree as text with one start tag per line, and the node of each line.

    Values are made harmless for the reader; `unescape` what it says of them.
    """
    lines: list[str] = []
    origins: list[Node] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, closing = stack.pop()
        origins.append(node)
        if closing:
            lines.append(f"</{node.tag}>")
            continue
        attributes = "".join(f" {key}={_quote(value)}" for key, value in node.attrib.items())
        if not node.children:
            lines.append(f"<{node.tag}{attributes}/>")
            continue
        lines.append(f"<{node.tag}{attributes}>")
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(node.children))
    return "\n".join(lines) + "\n", origins


def _quote(value: str) -> str:
    return quoteattr(value.translate(_HARMLESS))


def unescape(text: str) -> str:
    """A name or message of MuJoCo, with the characters that `write` replaced."""
    return text.replace(_PERCENT, "%")
