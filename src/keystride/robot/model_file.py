"""What the MuJoCo file of a robot may contain, checked before MuJoCo reads it.

MuJoCo multiplies what a file says: a few bytes can ask for a billion bodies, or for a texture of a terabyte. So the elements of a
robot's model are listed here, everything that has a size has a maximum, and the files that it names lie in its folder.
"""

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.parsers import expat

import PIL.Image

from keystride.errors import FileError
from keystride.reading import MIB, check_size, one_line, read_bytes

XML_BYTES = 4 * MIB  # of the model and the files it includes
ASSET_BYTES = 32 * MIB  # of all meshes and textures
ELEMENTS = 5_000
MAX_NESTING = 64
ATTRIBUTES = 50_000
PIXELS = 32 * MIB  # of all textures, a cube with its six sides

PARTS = {
    *(
        "mujoco",
        "mujocoinclude",
        "include",
        "compiler",
        "option",
        "flag",
        "statistic",
        "default",
        "worldbody",
        "contact",
        "exclude",
        "pair",
    ),
    *("visual", "global", "quality", "headlight", "map", "scale", "rgba"),
    *("asset", "texture", "material", "layer", "mesh"),
    *("body", "frame", "freejoint", "joint", "inertial", "geom", "site", "camera", "light", "keyframe", "key"),
}
NOT_ALLOWED = {  # attributes, of any element
    "user": "values of the user",
    "content_type": "the name of a file tells its type",
    "builtin": "allowed for textures only",
    "plugin": "no plugins",
    "octree_maxdepth": "no octrees",
    "strippath": "files are named with their folder",
}
MOST = {  # of an attribute that is one number or several
    **dict.fromkeys(("width", "height", "offwidth", "offheight"), 4096),
    "shadowsize": 8192,
    "resolution": 4096,
    "offsamples": 16,
    **dict.fromkeys(("numslices", "numstacks", "numquads"), 100),
    **dict.fromkeys(("iterations", "ls_iterations", "noslip_iterations", "ccd_iterations", "sdf_iterations"), 1000),
    **dict.fromkeys(("sdf_initpoints", "maxhullvert"), 1000),
    "gridsize": 12,
}
FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
FOLDERS = ("assetdir", "meshdir", "texturedir")
SUFFIXES = {"mesh": (".stl", ".obj", ".msh"), "texture": (".png",), "include": (".xml",)}


@dataclass
class _Found:
    """What the model and its included files ask for so far."""

    folder: Path
    bytes: int = 0
    elements: int = 0
    attributes: int = 0
    pixels: int = 0
    includes: list[tuple[str, str]] = field(default_factory=list)  # where it is named, and the name
    assets: list[tuple[str, str, str]] = field(default_factory=list)  # place, element, name
    folders: set[str] = field(default_factory=lambda: {""})


def check_model_file(path: Path) -> None:
    """Raise FileError, with file and line, if a model is not that of a robot or uses more than robots need."""
    found = _Found(path.parent)
    _scan(path, found)
    for place, name in found.includes:
        for file in _files_of(place, "include", name, found):
            _scan(file, found)
    left = ASSET_BYTES
    for place, element, name in found.assets:
        for file in _files_of(place, element, name, found):
            left -= file.stat().st_size
            if left < 0:
                raise FileError(f"{place}: meshes and textures too large; allowed: {ASSET_BYTES // MIB} MiB in all")
            if element == "texture":
                _count_pixels(place, *_image_size(place, file), found)


def _scan(path: Path, found: _Found) -> None:
    """Check the elements of one file, and note the files that it names."""
    try:
        content = read_bytes(path, XML_BYTES - found.bytes)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    found.bytes += len(content)
    included = found.bytes > len(content)
    open_elements: list[str] = []
    parser = expat.ParserCreate("UTF-8")  # like MuJoCo, which ignores the declared encoding

    def place() -> str:
        return f"{path}:{parser.CurrentLineNumber}"

    def start(element: str, attributes: dict[str, str]) -> None:
        open_elements.append(element)
        found.elements += 1
        found.attributes += len(attributes)
        if len(open_elements) > MAX_NESTING:
            raise FileError(f"{place()}: nested too deep; allowed: {MAX_NESTING} levels")
        if found.elements > ELEMENTS or found.attributes > ATTRIBUTES:
            raise FileError(f"{place()}: too large; allowed: {ELEMENTS} elements, {ATTRIBUTES} attributes")
        if included and element == "include":
            raise FileError(f"{place()}: an included file includes another; allowed: one level")
        _check_element(place(), element, attributes)
        _note_sizes(place(), element, attributes, found)

    def end(element: str) -> None:
        open_elements.pop()

    def document_type(*_: object) -> None:
        raise FileError(f"{place()}: a document type is not allowed")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise FileError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from error
    except (ValueError, LookupError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: not XML in UTF-8: {one_line(error)}") from error


def _check_element(place: str, element: str, attributes: dict[str, str]) -> None:
    shown = f"<{one_line(element, 40)}>"
    if element not in PARTS:
        raise FileError(f"{place}: {shown} is not allowed in a robot's model; allowed: {', '.join(sorted(PARTS))}")
    for name, text in attributes.items():
        if name in NOT_ALLOWED and (name, element) != ("builtin", "texture"):
            raise FileError(f"{place}: {name} in {shown} is not allowed ({NOT_ALLOWED[name]})")
        if name in MOST and not all(0 <= number <= MOST[name] for number in _numbers(place, name, text)):
            raise FileError(f"{place}: {name} {one_line(text, 40)} in {shown}; allowed: 0 to {MOST[name]}")


def _numbers(place: str, name: str, text: str) -> list[float]:
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        raise FileError(f"{place}: {name}: {one_line(repr(text), 40)} is not a number") from None


def _note_sizes(place: str, element: str, attributes: dict[str, str], found: _Found) -> None:
    found.folders |= {attributes[name] for name in FOLDERS if name in attributes}
    names = [attributes[name] for name in FILES if name in attributes]
    if element == "include":
        found.includes += [(place, name) for name in names]
    elif names and element not in SUFFIXES:
        raise FileError(f"{place}: a file in <{element}> is not allowed; allowed in: {', '.join(SUFFIXES)}")
    else:
        found.assets += [(place, element, name) for name in names]
    if element == "texture":
        width, height = (_numbers(place, name, attributes.get(name, "0")) for name in ("width", "height"))
        sides = 1 if attributes.get("type") == "2d" else 6
        _count_pixels(place, sum(width), max(sum(height), sides * sum(width)), found)


def _count_pixels(place: str, width: float, height: float, found: _Found) -> None:
    found.pixels += int(width * height)
    if found.pixels > PIXELS:
        raise FileError(
            f"{place}: textures too large; allowed: {PIXELS // MIB} million pixels in all, six sides for a cube"
        )


def _files_of(place: str, element: str, name: str, found: _Found) -> list[Path]:
    """Return what a model may mean by the name of a file: regular files of an expected type, within the model's folder."""
    shown = one_line(repr(name), 60)
    suffixes = SUFFIXES[element]
    if PurePosixPath(name).suffix.lower() not in suffixes:
        raise FileError(f"{place}: {shown} is not a file for <{element}>; allowed: {', '.join(suffixes)}")
    home, files = Path(os.path.realpath(found.folder)), []
    for folder in ("",) if element == "include" else sorted(found.folders):
        within = PurePosixPath(folder) / name
        outside = within.is_absolute() or ".." in within.parts or any(letter in str(within) for letter in ":\\\0")
        if outside or not Path(os.path.realpath(home / within)).is_relative_to(home):
            shown = one_line(repr(str(within)), 60)
            raise FileError(f"{place}: {shown} is outside the model's folder; allowed: files within it, without ..")
        try:
            check_size(home / within, ASSET_BYTES)
        except FileNotFoundError:
            continue
        except FileError as error:
            raise FileError(f"{place}: {shown}: {error}") from error
        files.append(home / within)
    if not files:
        raise FileError(f"{place}: there is no file {shown} in {found.folder}")
    return files


def _image_size(place: str, file: Path) -> tuple[int, int]:
    try:
        with warnings.catch_warnings(), PIL.Image.open(file, formats=["PNG"]) as image:
            warnings.simplefilter("ignore")  # about large images, whose size is limited here
            return image.size
    except Exception as error:  # PIL raises a dozen kinds for damaged images
        raise FileError(f"{place}: {file.name} is not a PNG image") from error
