"""Damage to files: by chance, by format, and by malice. The same random generator gives the same damage."""

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import yaml

NUMBERS = (
    *("0", "-0", "1", "-1", "-2", "2", "7", "0.5", "1.5", "-0.5", "1e9", "1e-9", "1000000", "100000000"),
    *("1e308", "-1e308", "1e-320", "1e999", "nan", "inf", "-inf", "NaN", "Infinity", "0x10", "1_000", ""),
    *("2147483648", "4294967295", "9223372036854775807", "-9223372036854775808", "18446744073709551616"),
    *("9" * 400, "9" * 5000),
)
TEXTS = (
    "",
    " ",
    "\0",
    "../../etc/passwd",
    "..",
    "/dev/zero",
    "a" * 5000,
    "ü\u2028\ud83d\ude00",
    "[[script]]",
    "</script>",
)
TEXTS += (
    "%s%n",
    "nan",
    "null",
    "-1",
    "{}",
    "!!python/object:os.system",
    "x.npz",
    ".npz",
    "a/b.npz",
    "a\nb",
    "\x1b[31m",
)


def mutate(content: bytes, kind: str, random: Random) -> bytes:
    """Return damaged content; one to three mutations one after the other."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        choices = [damage_bytes] + 3 * [BY_KIND[kind]]
        try:
            content = random.choice(choices)(content, random)
        except Exception:  # what was damaged before can no longer be taken apart
            content = damage_bytes(content, random)
    return content


def damage_bytes(content: bytes, random: Random) -> bytes:
    if not content:
        return random.randbytes(random.randrange(64))
    at, length = random.randrange(len(content)), random.choice((1, 1, 2, 4, 16, 256))
    other = random.randrange(len(content))
    before, here, after = content[:at], content[at : at + length], content[at + length :]
    flipped = bytearray(content)
    for _ in range(random.choice((1, 1, 4, 32))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    results = (
        bytes(flipped),
        bytes(flipped),
        before,
        before + after,
        before + random.randbytes(length) + here + after,
        before + here * random.choice((2, 3, 50)) + after,
        before + random.choice((b"\0", b"\xff")) * length + after,
        before + content[other : other + length] + after,
    )
    return random.choice(results)


def damage_text(content: bytes, random: Random) -> bytes:
    text = content.decode()
    action = random.randrange(6)
    if action == 0:
        numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
        chosen = random.choice(numbers[:40] if random.random() < 0.5 else numbers)
        return (text[: chosen.start()] + random.choice(NUMBERS) + text[chosen.end() :]).encode()
    if action == 1:
        words = list(re.finditer(r"[A-Za-z_]+", text))
        chosen = random.choice(words[:60] if random.random() < 0.5 else words)
        word = random.choice((*TEXTS, random.choice(words).group()))
        return (text[: chosen.start()] + word + text[chosen.end() :]).encode(errors="surrogatepass")
    lines = text.split("\n")
    at = random.randrange(len(lines))
    if action == 2:
        del lines[at : at + random.choice((1, 2, 10))]
    elif action == 3:
        lines[at:at] = [lines[at]] * random.choice((1, 2, 100))
    elif action == 4:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] = lines[at] * random.choice((2, 10, 1000)) if random.random() < 0.5 else " ".join(lines[at : at + 5])
    return "\n".join(lines).encode()


def odd_value(random: Random) -> Any:
    deep: Any = 0
    for _ in range(random.choice((3, 50, 2000)) if random.random() < 0.1 else 0):
        deep = [deep] if random.random() < 0.5 else {"a": deep}
    values = (None, True, False, 0, -1, 1, 1.5, 2**31, 2**63, 10**30, 1e308, float("nan"), float("inf"), [], {}, [[]])
    return random.choice((*values, *TEXTS, [1] * 1000, {"a": 1}, [None], deep))


def damage_tree(data: Any, random: Random) -> Any:
    """Replace, remove, rename or repeat one node of nested lists and mappings."""
    holders: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict | list) and value:
            holders.append(value)
            items = list(value.values() if isinstance(value, dict) else value)
            count = len(items)
            for i in {
                *range(min(count, 5)),
                *random.sample(range(count), min(count, 3)),
            }:  # each once: nesting may be deep
                walk(items[i])

    walk(data)
    if not holders or random.random() < 0.03:
        return odd_value(random)
    holder = random.choice(holders)
    key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    action = random.randrange(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, dict):
        holder[str(odd_value(random))[:6000]] = holder.pop(key)
    elif action == 2 and isinstance(holder, list):
        holder += [holder[key]] * random.choice((1, 2, 500))
    else:
        holder[key] = odd_value(random)
    return data


def damage_json(content: bytes, random: Random) -> bytes:
    if random.random() < 0.25:
        return damage_text(content, random)
    if random.random() < 0.03:
        return random.choice((b"[" * 200_000, b'{"a":' * 50_000, b"[" + b"9" * 100_000 + b"]"))
    return json.dumps(damage_tree(json.loads(content), random)).encode()


def damage_lines(content: bytes, random: Random) -> bytes:
    """JSON, one value in each line."""
    lines = content.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = damage_json(lines[at], random)
    return b"\n".join(lines)


def damage_yaml(content: bytes, random: Random) -> bytes:
    if random.random() < 0.4 or b"&a" in content:  # what aliases unfold to would fill the memory here
        return damage_text(content, random)
    if random.random() < 0.05:
        bomb = b"a: &a [x, x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (i + 1, i + 1, i, i) for i in range(97, 120))
        return random.choice((bomb, b"[" * 100_000, b"a: !!python/name:os.system\n", b"- " * 50_000, b"? " * 5000))
    return yaml.safe_dump(damage_tree(yaml.safe_load(content), random), sort_keys=False).encode()


GREEDY = (  # what a model of MuJoCo can ask for in few bytes
    '<replicate count="1000000000"><geom size="1"/></replicate>',
    '<composite type="cable" count="100000 1 1"/>',
    '<texture name="t" type="2d" builtin="flat" width="30000" height="30000"/>',
    '<mesh name="m" builtin="supertorus" params="100000 1 1 1"/>',
    '<hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/>',
    '<size memory="1T" nuser_body="1000000000" nkey="1000000000"/>',
    '<include file="../secret.xml"/>',
    '<include file="robot.xml"/>',
    '<mesh name="m" file="/dev/zero"/>',
    '<plugin plugin="x"/>',
    '<numeric name="n" size="400000000"/>',
    "<body>" * 300 + "</body>" * 300,
    '<geom size="1"/>' * 20_000,
    "<body><joint/></body>" * 20_000,
)


def damage_xml(content: bytes, random: Random) -> bytes:
    """Change an element or an attribute, or ask for a lot."""
    text, action = content.decode(), random.randrange(5)
    if action == 0:
        return damage_text(content, random)
    elements = list(re.finditer(r"<[a-z][^>]*>", text))
    chosen = random.choice(elements)
    if action == 1:
        place = chosen.end()
        return (text[:place] + random.choice(GREEDY) + text[place:]).encode()
    if action == 2:
        return (text[: chosen.start()] + text[chosen.end() :]).encode()
    values = list(re.finditer(r'"[^"]*"', text))
    value = random.choice(values)
    other = random.choice((*NUMBERS, *TEXTS, random.choice(values).group()[1:-1])) if action == 3 else ""
    return (text[: value.start()] + f'"{other}"' + text[value.end() :]).encode(errors="surrogatepass")


def damage_npz(content: bytes, random: Random) -> bytes:
    """Change arrays, their headers, or the archive around them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = random.choice(list(members))
    action = random.randrange(6)
    if action == 0:
        del members[name]
    elif action == 1:
        members[name] = _npy(_odd_array(np.load(io.BytesIO(members[name])), random))
    elif action == 2:
        members[name] = _with_header(members[name], random)
    elif action == 3:
        members[random.choice((*TEXTS, "extra.npy"))] = members.pop(name)
    elif action == 4:
        members[name] = damage_bytes(members[name], random)
    else:
        members |= {f"more{i}.npy": members[name] for i in range(random.choice((1, 200)))}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member.replace("\0", "")), data)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _odd_array(array: np.ndarray, random: Random) -> np.ndarray:
    options: list[Callable[[], np.ndarray]] = [
        lambda: array[:0] if array.ndim else array.reshape(1),
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: np.zeros((3, 3, 3, 3)),
        lambda: np.array(random.choice((float("nan"), 1e308, -1.0, 0.0, 1e-300, 1e9))),
        lambda: np.array(random.choice(TEXTS)),
        lambda: np.array(
            random.choice(('{"tags": 3}', "[]", "{", '{"segments": [[1]]}', '{"weight": -1}', "[" * 9999))
        ),
        lambda: np.full(array.shape, random.choice((float("nan"), float("inf"), 1e308, 7e5, 0.0))),
        lambda: array.astype("complex128") if array.dtype.kind == "f" else array,
        lambda: array.astype("S") if array.dtype.kind == "f" else array,
        lambda: np.repeat(array.reshape(-1), 2),
        lambda: np.array("2026-01-01", dtype="datetime64[s]"),
    ]
    return random.choice(options)()


def _with_header(data: bytes, random: Random) -> bytes:
    """The same values under a header that says something else."""
    shape = random.choice(
        ("(10000000000000,)", "(-1,)", "(1000000, 1000000)", "()", "(0, 99999999999)", "(2.5,)", "'x'", "1")
    )
    kind = random.choice(
        ("<f8", "|O", "<U4294967295", "<U1000000", "|V0", "<c16", "[('a', '<f8')]", "<f8" * 50, "<i1000")
    )
    kind = f"'{kind}'" if not kind.startswith("[") else kind
    header = f"{{'descr': {kind}, 'fortran_order': {random.choice(('False', 'True', '7'))}, 'shape': {shape}, }}"
    header += random.choice(("", " " * 50, "," * 3, "x", "\n")) + "\n"
    length = random.choice((len(header), 65535, 0))
    start = data.find(b"\n") + 1
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header.encode() + data[start:]


def damage_safetensors(content: bytes, random: Random) -> bytes:
    """Change the JSON header; the data stay."""
    (length,) = struct.unpack("<Q", content[:8])
    header, data = content[8 : 8 + length], content[8 + length :]
    if random.random() < 0.3:
        return struct.pack("<Q", random.choice((0, 1, 2**63, 2**32, length + 1, length - 1))) + header + data
    if random.random() < 0.3:
        return content[: 8 + length] + damage_bytes(data, random)
    if random.random() < 0.3:
        tensors = json.loads(header)
        entry = tensors[random.choice([name for name in tensors if name != "__metadata__"])]
        entry["dtype"] = random.choice(("F64", "I64", "BF16", "F8_E4M3", "BOOL", "U8", "X"))
        header = json.dumps(tensors).encode()
    else:
        header = json.dumps(damage_tree(json.loads(header), random)).encode()
    return struct.pack("<Q", len(header)) + header + data


def damage_onnx(content: bytes, random: Random) -> bytes:
    """Change the graph or the metadata, and give the file a checksum that is right again."""
    import onnx

    from keystride.policy.bundle import ZEROS, sealed

    model = onnx.load_from_string(content)
    properties = {entry.key: entry.value for entry in model.metadata_props}
    graph = model.graph
    action = random.randrange(10)
    if action == 0:
        properties[random.choice(list(properties))] = random.choice((*NUMBERS, *TEXTS)).replace("\ud83d\ude00", "")
    elif action == 1:
        del properties[random.choice(list(properties))]
    elif action == 2:
        del graph.node[random.randrange(len(graph.node))]
    elif action == 3:
        node = random.choice(graph.node)
        node.op_type = random.choice(
            ("Expand", "Tile", "Loop", "ConstantOfShape", "Identity", "Softmax", "Nothing", "Range")
        )
    elif action == 4:
        tensor = random.choice(graph.initializer)
        tensor.raw_data = damage_bytes(tensor.raw_data, random)
    elif action == 5:
        tensor = random.choice(graph.initializer)
        tensor.dims[:] = random.choice(([], [0], [-1], [2**40], [2**31, 2**31], [1], [3, 3]))
    elif action == 6:
        tensor = random.choice([one for one in graph.initializer if one.data_type == 7])
        values = [
            random.choice((0, -1, 2**20, 2**24, 2**31, 2**40, 2**62, 2**63 - 1))
            for _ in range(random.choice((1, 2, 3)))
        ]
        tensor.raw_data = np.array(values, dtype="<i8").tobytes()
        tensor.dims[:] = random.choice(([len(values)], list(tensor.dims)))
    elif action == 7:
        tensor = random.choice(graph.initializer)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(
            key="location", value=random.choice(("/etc/passwd", "policy.onnx", "../x", "/dev/zero"))
        )
        tensor.ClearField("raw_data")
    elif action == 8:
        values = random.choice((graph.input, graph.output))
        del values[random.randrange(len(values))]
    else:
        value = random.choice([*graph.input, *graph.output])
        if random.random() < 0.5:
            value.name = random.choice(("x", "goal_time", ""))
        else:
            value.type.tensor_type.shape.dim[-1].dim_value = random.choice((0, 1, 12, 13, 2**40))
    onnx.helper.set_model_props(model, properties | ({"file_sha256": ZEROS} if "file_sha256" in properties else {}))
    damaged = model.SerializeToString()
    return sealed(damaged) if "file_sha256" in properties else damaged


BY_KIND = {
    "text": damage_text,
    "json": damage_json,
    "jsonl": damage_lines,
    "yaml": damage_yaml,
    "xml": damage_xml,
    "npz": damage_npz,
    "safetensors": damage_safetensors,
    "onnx": damage_onnx,
}
