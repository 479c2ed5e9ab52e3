"""Update the text of a YAML file from a draft, preserving comments, order and layout."""

from collections.abc import Sequence
from io import StringIO
from typing import Any

import yaml
from ruamel.yaml import YAML, YAMLError
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from keystride.keyframes.document import ScriptError
from keystride.keyframes.files import format_script, parse_script
from keystride.keyframes.script import Keyframe
from keystride.studio.document.draft import Draft


def merge(text: str, keys: Sequence[int], draft: Draft) -> str:
    """Return the text with the keyframes of the draft; `keys` are the keys of the keyframes in the text, in order.

    Comments above a keyframe belong to it. If the keyframes are not a block list, only the text around them is
    preserved. Line endings stay as they are.
    """
    script = draft.script()
    if script is None:
        raise ValueError("a script needs at least one keyframe")
    lines = text.replace("\r\n", "\n")
    for attempt in (_merge, _merge_around):
        try:
            merged = attempt(lines, keys, draft)
            if parse_script(merged, robot=draft.robot) == script:
                return merged.replace("\n", "\r\n") if "\r\n" in text else merged
        except (yaml.YAMLError, YAMLError, ScriptError, _OtherStyle):
            continue
    return format_script(script)


class _OtherStyle(Exception):
    """The text is not a block list of mappings, one keyframe after the other."""


def _merge(text: str, keys: Sequence[int], draft: Draft) -> str:
    before = parse_script(text, robot=draft.robot)
    if before.angles != draft.angles or len(before.keyframes) != len(keys):
        raise _OtherStyle
    header, blocks, trailer, indent = _split(text)
    known = dict(zip(keys, zip(before.keyframes, blocks, strict=True), strict=True))
    parts = [
        _updated(*known[mark.key], mark.keyframe, indent) if mark.key in known else _written(mark.keyframe, indent)
        for mark in draft.marks
    ]
    return header + "".join(parts) + trailer


def _merge_around(text: str, keys: Sequence[int], draft: Draft) -> str:
    """Replace the whole list of keyframes."""
    if parse_script(text, robot=draft.robot).angles != draft.angles:
        raise _OtherStyle
    _, items = _nodes(text)
    written = "".join(_written(mark.keyframe, 2) for mark in draft.marks)
    before = text[: items.start_mark.index].rstrip(" ")
    return f"{before}\n{written.rstrip()}\n{text[items.end_mark.index :].lstrip(' ').removeprefix(chr(10))}"


def _nodes(text: str) -> tuple[yaml.MappingNode, yaml.SequenceNode]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise _OtherStyle
    items = next((value for key, value in root.value if key.value == "keyframes"), None)
    if not isinstance(items, yaml.SequenceNode):
        raise _OtherStyle
    return root, items


def _split(text: str) -> tuple[str, list[str], str, int]:
    """Return the text above the list, the lines of each keyframe, the text below, and the column of the dashes."""
    root, items = _nodes(text)
    if items.flow_style or any(not isinstance(item, yaml.MappingNode) for item in items.value):
        raise _OtherStyle
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    starts = [item.start_mark.line for item in items.value]
    ends = [_last_line(item) + 1 for item in items.value]
    indent = items.start_mark.column
    if any(not lines[start][indent:].startswith("- ") for start in starts) or len(set(starts)) != len(starts):
        raise _OtherStyle
    firsts = [_key_line(root) + 1, *ends[:-1]]
    blocks = ["".join(lines[first:end]) for first, end in zip(firsts, ends, strict=True)]
    return "".join(lines[: firsts[0]]), blocks, "".join(lines[ends[-1] :]), indent


def _key_line(root: yaml.MappingNode) -> int:
    return next(key.end_mark.line for key, _ in root.value if key.value == "keyframes")


def _last_line(node: yaml.Node) -> int:
    """Return the last line that the node occupies."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return max(_last_line(value) for _, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return max(_last_line(value) for value in node.value)
    return node.end_mark.line if node.end_mark.column else node.end_mark.line - 1


def _updated(old: Keyframe, block: str, new: Keyframe, indent: int) -> str:
    """Return the block with the changed fields replaced."""
    if old == new:
        return block
    lines = block.splitlines(keepends=True)
    first = next(row for row, line in enumerate(lines) if line[indent:].startswith("- "))
    inner = lines[first].replace("- ", "  ", 1)
    if inner.lstrip().startswith("{"):
        flow = _updated_flow("".join([inner, *lines[first + 1 :]]), old, new)
        return "".join(lines[:first]) + flow[:indent] + "-" + flow[indent + 1 :]
    column = len(inner) - len(inner.lstrip())
    body = "".join(
        line[column:] if line[:column].isspace() else line.lstrip(" ") for line in (inner, *lines[first + 1 :])
    )
    editor = _editor()
    fields = editor.load(body)
    if not isinstance(fields, CommentedMap):
        raise _OtherStyle
    _replace(fields, old, new)
    return "".join(lines[:first]) + _as_item(editor, fields, indent, column)


def _updated_flow(text: str, old: Keyframe, new: Keyframe) -> str:
    """Return the text of a mapping in braces with the changed fields replaced, removed or added at its end."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise _OtherStyle
    before, after = _fields(old), _fields(new)
    pairs = {
        key.value: (key.start_mark.index, value.start_mark.index, value.end_mark.index) for key, value in node.value
    }
    written = {
        name: text[start:end] if before.get(name) == after[name] else text[start:value] + _flow(after[name])
        for name, (start, value, end) in pairs.items()
        if name in after
    }
    added = [f"{name}: {_flow(value)}" for name, value in after.items() if name not in pairs]
    if len(written) < len(pairs):
        inside = "{" + ", ".join([*written.values(), *added]) + "}"
        return text[: node.start_mark.index] + inside + text[node.end_mark.index :]
    for name, (start, _, end) in reversed(pairs.items()):  # what is between the fields stays as it is
        text = text[:start] + ", ".join([written[name], *added]) + text[end:]
        added = []
    return text


def _flow(value: Any) -> str:
    """Return a value on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...")


def _replace(fields: CommentedMap, old: Keyframe, new: Keyframe) -> None:
    before, after = _fields(old), _fields(new)
    for name in [name for name in fields if name not in after]:
        del fields[name]
    for name, value in after.items():
        if name not in fields or before.get(name) != value:
            fields[name] = _node(value)


def _written(keyframe: Keyframe, indent: int) -> str:
    fields = CommentedMap((name, _node(value)) for name, value in _fields(keyframe).items())
    return _as_item(_editor(), fields, indent, indent + 2)


def _as_item(editor: YAML, fields: CommentedMap, indent: int, column: int) -> str:
    stream = StringIO()
    editor.dump(fields, stream)
    lines = [" " * column + line if line.strip() else line for line in stream.getvalue().splitlines(keepends=True)]
    lines[0] = " " * indent + "-" + lines[0][indent + 1 :]
    return "".join(lines)


def _fields(keyframe: Keyframe) -> dict[str, Any]:
    return keyframe.model_dump(mode="json", exclude_defaults=True) | {"time": keyframe.time}


def _node(value: Any) -> Any:
    """Return a value for the emitter, with lists on one line."""
    if not isinstance(value, list):
        return value
    node = CommentedSeq(value)
    node.fa.set_flow_style()
    return node


def _editor() -> YAML:
    editor = YAML(typ="rt")
    editor.width = 120
    editor.preserve_quotes = True
    return editor
