"""Loading data: arrays in files, folders of images, MNIST's format, and a few named data sets."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from os.path import exists, isdir, isfile  # which take any text: Path.exists raises errors for long names
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asynchebb import files, notation, tables
from asynchebb.checks import InputError, shown
from asynchebb.contracts import Stimulus
from asynchebb.thumbnails import guessed_shape

SAMPLES = {"Patches": 10_000}  # number of samples drawn from a stimulus
USUAL_SAMPLES = 2_000  # the same for all others

NAMED = {"patches": "Patches(12)", "crossbars": "Crossbars(8)"}  # and "digits", which has labels
DATA = ("X", "x", "data", "images", "image")  # names by which data and labels are recognised in a file
LABELS = ("y", "labels", "label", "target", "targets", "classes", "class")
SEVERAL = {".npz", ".nc", ".h5", ".hdf5"}  # files that hold several arrays
PICTURES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif", ".pgm", ".ppm", ".webp"}
ACCEPTED = (
    "digits, patches, crossbars, a stimulus like Bars(8), an array in a file (.npy, .npz, .nc, or idx like MNIST), "
    "a table (.csv, .tsv, .parquet), or a folder of images"
)

UNREADABLE = (*files.UNREADABLE, SyntaxError, zlib.error)

# The idx format: two zero bytes, the number type, the number of axes; the size of each axis; the numbers.
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class Data(NamedTuple):
    """Samples, with their labels and source if known."""

    name: str
    X: Any  # (samples, m) or (samples, height, width), as in the file
    labels: np.ndarray | None = None
    stimulus: Stimulus | None = None  # the stimulus they were drawn from
    how: str = ""  # how a table was read

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a sample as an image: (height, width), or (2, height, width) for ON and OFF channels."""
        if (shape := getattr(self.stimulus, "shape", None)) is not None:
            return shape
        if self.X.ndim == 3 and min(self.X.shape[1:]) > 1:
            return self.X.shape[1:]
        if self.X.ndim == 3:
            return (1, prod(self.X.shape[1:]))
        return guessed_shape(self.X.shape[1])

    @property
    def flat(self) -> Any:
        return self.X.reshape(len(self.X), -1)


def load(text: str, array: str | None = None, labels: str | None = None) -> Data:
    """Load the data named by `text`; `array` and `labels` select arrays in a file, and `labels` may also be a file."""
    path = Path(text)
    if text == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        found = Data(text, digits.images, digits.target)
    elif text in NAMED or (not exists(path) and (_is_stimulus(text) or ".py:" in text)):
        stimulus = notation.parse_named("stimulus", NAMED.get(text, text))
        count = SAMPLES.get(type(stimulus).__name__, USUAL_SAMPLES)
        found = Data(text, stimulus.sample(np.random.default_rng(0), count), None, stimulus)
    elif isdir(path):
        found = _folder(path)
    elif isfile(path):
        found = _file(path, array, labels)
    else:
        why = "it is neither a file nor a folder" if exists(path) else "there is no such file"
        raise InputError(f"data is {shown(text)}; {why}, and it must be {ACCEPTED}")
    several = path.suffix in SEVERAL and isfile(path)
    if array is not None and not several:
        raise InputError(f"array is {array!r}; {text!r} is not a file of several arrays ({', '.join(sorted(SEVERAL))})")
    several |= path.suffix in tables.KINDS and isfile(path)  # of several columns
    if labels is not None and isfile(labels):
        found = found._replace(labels=_labels(Path(labels)))
    elif labels is not None and not several:
        raise InputError(f"labels is {labels!r}; there is no such file, and {text!r} holds no other arrays")
    return _checked(found, text)


def _is_stimulus(text: str) -> bool:
    return text.partition("(")[0] in notation.variants("stimulus")


def _labels(path: Path) -> np.ndarray:
    """Labels from a separate file: its only 1-D array."""
    try:
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                found = [arrays[name] for name in arrays.files if arrays[name].ndim == 1]
            if len(found) == 1:
                return found[0]
        else:
            return np.load(path) if path.suffix == ".npy" else _idx(path)
    except UNREADABLE:
        pass
    raise InputError(f"labels is {str(path)!r}; it must be a 1-D array in a .npy, .npz or idx file")


def _checked(data: Data, text: str) -> Data:
    X = data.X
    if X.dtype.kind not in "fiub":
        raise InputError(f"data is {text!r}, which has dtype {X.dtype}; it must hold real numbers")
    if X.ndim not in (2, 3) or not X.size:
        raise InputError(
            f"data is {text!r}, an array of shape {X.shape}; it must be (samples, features) or "
            "(samples, height, width), and not empty"
        )
    if X.dtype.kind == "f":
        for start in range(0, len(X), 4096):
            bad = np.argwhere(~np.isfinite(X[start : start + 4096]))
            if len(bad):
                where = (int(start + bad[0][0]), *map(int, bad[0][1:]))
                raise InputError(
                    f"data is {text!r}, which holds a value that is not finite, at {where}; all must be finite"
                )
    if data.labels is not None and np.shape(data.labels) != (len(X),):
        raise InputError(
            f"labels has shape {np.shape(data.labels)}; there are {len(X)} samples, so it must be ({len(X)},)"
        )
    return data


def _file(path: Path, array: str | None, labels: str | None) -> Data:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            start = file.read(8)
        if path.suffix == ".npy":
            return Data(path.stem, np.load(path, mmap_mode="r"))
        if path.suffix in tables.KINDS:
            return _table(path, labels)
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                return _of_several(path, {name: arrays[name] for name in arrays.files}, array, labels)
        if start[:4] == b"\x89HDF" or start[:3] == b"CDF":
            return _netcdf(path, start[:3] == b"CDF", array, labels)
        if start[:2] == b"\0\0" and len(start) > 3 and start[2] in IDX_TYPES and 0 < start[3] < 5:
            return Data(path.stem, _idx(path), _idx_labels(path))
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(f"data is {str(path)!r}, which cannot be read: {error}") from None
    raise InputError(f"data is {str(path)!r}, an unsupported kind of file; it must be {ACCEPTED}")


def _of_several(path: Path, arrays: dict[str, np.ndarray], array: str | None, labels: str | None) -> Data:
    """Data and labels among the arrays of a file: those requested, or those recognised by name."""
    for option, name in (("array", array), ("labels", labels)):
        if name is not None and name not in arrays and not (option == "labels" and isfile(name)):
            raise InputError(f"{option} is {name!r}; {str(path)!r} holds {', '.join(arrays) or 'none'}")
    tables = [name for name, values_ in arrays.items() if values_.ndim in (2, 3)]
    named = [name for name in tables if name in DATA]
    choice = array or (named[0] if named else tables[0] if len(tables) == 1 else None)
    if choice is None:
        raise InputError(f"array is not given; it must be one of {', '.join(arrays)}, the arrays in {str(path)!r}")
    fitting = (name for name in LABELS if name in arrays and arrays[name].shape == (len(arrays[choice]),))
    labelling = labels if labels in arrays else next(fitting, None)
    return Data(path.stem, arrays[choice], None if labelling is None else arrays[labelling])


def _table(path: Path, labels: str | None) -> Data:
    """A row per sample and a column per feature, except for one of labels: the one requested, or recognised by name."""
    import pandas as pd

    table, left_out = tables.read("data", path)
    columns = [*table.columns]
    if table.empty:
        raise InputError(f"data is {str(path)!r}, a table without rows; it must have a row per sample")
    if labels is not None and labels not in columns and not isfile(labels):
        raise InputError(f"labels is {labels!r}; {str(path)!r} has the columns {_some(columns)}")
    # A column of numbers called y may be a feature; it holds labels only if that is said.
    named = (name for name in LABELS if name in columns and (name != "y" or table[name].dtype.kind not in "fiub"))
    column = labels if labels in columns else next(named, None)
    numbers = table if column is None else table.drop(columns=column)
    text = [name for name in numbers if not pd.api.types.is_numeric_dtype(numbers[name])]
    if text:
        hint = "; is it separated by something other than a comma?" if len(columns) == 1 else ""
        raise InputError(
            f"data is {str(path)!r}, whose column {text[0]!r} does not hold numbers; remove it, or name it as "
            f"labels{hint}"
        )
    kinds = {str(kind) for kind in numbers.dtypes}
    plain = len(kinds) == 1 and numbers.dtypes.iloc[0].kind in "fiub" and isinstance(numbers.dtypes.iloc[0], np.dtype)
    X = numbers.to_numpy() if plain else numbers.to_numpy(np.float64, na_value=np.nan)
    names = f"columns {numbers.columns[0]} … {numbers.columns[-1]}" if len(numbers.columns) > 1 else numbers.columns[0]
    how = f"{len(numbers.columns)} features, {names}"
    how += f"; labels: {column}" if column is not None else "; no labels"
    how += f"; row numbers left out: {left_out}" if left_out else ""
    return Data(path.stem, X, None if column is None else table[column].to_numpy(), how=how)


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _netcdf(path: Path, classic: bool, array: str | None, labels: str | None) -> Data:
    import xarray

    options: dict[str, Any] = {"engine": "scipy"} if classic else {"engine": "h5netcdf", "phony_dims": "sort"}
    if not classic:
        files.look_into(path)
    with xarray.open_dataset(path, **options) as dataset:
        named = {array, labels, *dataset.data_vars}  # a coordinate axis called y does not hold labels
        variables = {str(name): np.asarray(dataset[name]) for name in dataset.variables if name in named}
    return _of_several(path, variables, array, labels)


def _idx(path: Path) -> np.ndarray:
    content: Any = (
        np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
        if path.suffix == ".gz"
        else np.memmap(path, mode="r")
    )
    kind, axes = np.dtype(IDX_TYPES[int(content[2])]), int(content[3])
    shape = tuple(int(size) for size in content[4 : 4 + 4 * axes].view(">u4"))
    numbers = content[4 + 4 * axes :]
    if len(numbers) != prod(shape) * kind.itemsize:
        raise ValueError(f"it should hold {shape} numbers of {kind.itemsize} bytes, and has {len(numbers)} bytes")
    return np.asarray(numbers.view(kind)).reshape(shape)


def _idx_labels(path: Path) -> np.ndarray | None:
    """MNIST keeps its labels in a separate file next to the images."""
    labels = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    return _idx(labels) if labels != path and labels.is_file() else None


def _folder(path: Path) -> Data:
    """All images in a folder, in greyscale; if all are in subfolders, these are the labels."""
    from PIL import Image

    try:
        found = [file for file in path.rglob("*") if file.suffix.lower() in PICTURES]
    except OSError as error:
        raise InputError(f"data is the folder {str(path)!r}, which cannot be read: {error}") from None
    names = sorted(file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))
    if not names:
        hint = next((f"; name a file: {file}" for file in sorted(path.glob("*images*idx3*"))), "")
        raise InputError(
            f"data is the folder {str(path)!r}, which holds no images ({', '.join(sorted(PICTURES))}){hint}"
        )
    images: list[np.ndarray] = []
    for name in names:
        try:
            with Image.open(name) as image:
                images.append(_grey(image))
        except (*UNREADABLE, Image.DecompressionBombError) as error:
            raise InputError(f"data is the folder {str(path)!r}, whose {name.name} cannot be read: {error}") from None
        if images[-1].shape != images[0].shape:
            raise InputError(
                f"data is the folder {str(path)!r}, whose images differ in size: {names[0].name} is "
                f"{images[0].shape}, {name.name} {images[-1].shape}; all must have the same size"
            )
    in_folders = all(name.parent != path for name in names)
    labels = np.array([name.relative_to(path).parts[0] for name in names]) if in_folders else None
    return Data(path.name, np.stack(images), labels)


def _grey(image: Any) -> np.ndarray:
    """Pixels of more than eight bits unchanged, others as grey levels from 0 to 255; transparent ones are black."""
    from PIL import Image

    if getattr(image, "n_frames", 1) > 1:
        raise ValueError(f"it has {image.n_frames} pages; use one image per file, or an array")
    if image.mode.startswith(("I", "F")):
        return np.asarray(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image)
    return np.asarray(image.convert("L"))
