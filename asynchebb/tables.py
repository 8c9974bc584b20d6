"""Tables in files: CSV, TSV and Parquet."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asynchebb.checks import InputError
from asynchebb.files import atomic, make_writable

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
KINDS = (*SEPARATORS, ".parquet")
INDEX = ("index", "id", "row", "number")  # names of a column of row numbers


def check(name: str, path: Path, *others: str) -> None:
    """`path` must name a file of one of these kinds, or of the `others`, which can be written."""
    accepted = (*others, *KINDS)
    if path.suffix not in accepted or path.is_dir():
        raise InputError(f"{name} is {str(path)!r}; it must be a file that ends in {', '.join(accepted)}")
    _check_parquet(name, path)


def _check_parquet(name: str, path: Path) -> None:
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(f"{name} is {str(path)!r}; Parquet needs pyarrow: pip install 'asynchebb[parquet]'")


def read(name: str, path: Path) -> tuple[pd.DataFrame, str]:
    """The table, and the name of a first column of row numbers that was left out."""
    import pandas as pd

    _check_parquet(name, path)
    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
    else:
        # A file may have no header: then its first row holds numbers alone, and does not count the columns.
        separator = SEPARATORS[path.suffix]
        first = pd.read_csv(path, sep=separator, header=None, nrows=1).iloc[0]
        counts = [*first] == [*range(len(first))] and len(first) > 1
        is_headed = counts or not all(map(_is_number, first))
        table = pd.read_csv(path, sep=separator, header=0 if is_headed else None)
    table.columns = table.columns.map(str)
    first = str(table.columns[0])
    is_index = first.lower() in INDEX or first.startswith("Unnamed: ")
    if is_index and [*table.iloc[:, 0]] == [*range(len(table))]:
        return table.iloc[:, 1:], first  # pandas writes them unless told not to
    return table, ""


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def write(name: str, table: pd.DataFrame, path: Path) -> None:
    check(name, path)
    make_writable(name, path, path.parent)
    with atomic(path, path.parent) as temporary:
        write_to(temporary, table, path.suffix)


def write_to(file: Path, table: pd.DataFrame, kind: str) -> None:
    if kind == ".parquet":
        table.to_parquet(file, index=False)
    else:
        table.to_csv(file, index=False, sep=SEPARATORS[kind])
