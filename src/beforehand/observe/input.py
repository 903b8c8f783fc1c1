"""Find the file format of a folder of events, or read it as a sample with ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from beforehand.errors import InputError
from beforehand.kernels.observer.reorder import Ints, Stamps
from beforehand.observe.stamps import first_elements, integers
from beforehand.observe.time_unit import DEFAULT, NAMES, PER_SECOND, UNITS, TimeUnit, decide, span
from beforehand.observe.tune import Sample
from beforehand.protocols.observer.timestamp import Guarantees

Format = Literal["json", "parquet"]
FORMATS: dict[str, Format] = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
PACKED = ".gz"
PAST_HINT = "the vector clock of each sending: one integer for each process, itself counted"


def find_format(folder: Path) -> Format:
    """Return the format of the files by their names. The path may also be a single file."""
    files = list_files(folder)
    formats = {_format_of(file) for file in files}
    format = formats.pop() if len(formats) == 1 else None
    if format is None:
        suffixes = ", ".join(sorted({f"`{file.suffix}`" for file in files}))
        known = ", ".join(f"`{suffix}`" for suffix in FORMATS)
        raise InputError(
            f"unknown kind of files: {suffixes}" if files else "no file in it yet",
            where=str(folder),
            hint=f"put files of one kind into it: {known}; text may be packed: `.json.gz`",
        )
    _refuse_folders(files, folder)
    if format == "parquet" and (empty := [file for file in files if not file.stat().st_size]):
        hint = "write it again, or take it out of the folder"
        raise InputError("an empty file is no Parquet file", where=str(empty[0]), hint=hint)
    return format


def _format_of(file: Path) -> Format | None:
    found = FORMATS.get(Path(file.name.removesuffix(PACKED)).suffix)
    return None if found == "parquet" and file.suffix == PACKED else found


def _refuse_folders(files: list[Path], folder: Path) -> None:
    """Raise InputError for files in subfolders that are not named `column=value`.

    Spark reads `column=value` folders as partitions and silently skips all others.
    """
    for file in files:
        above = file.relative_to(folder).parts[:-1] if file != folder else ()
        if any("=" not in part for part in above):
            raise InputError(
                f"`{file.relative_to(folder)}` would not be read: it lies in a folder below",
                where=str(folder),
                hint="give that folder, or name folders `column=value`",
            )


def list_files(folder: Path) -> list[Path]:
    """Return the files of a folder in order of their names; a file yields itself."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        problem = f"no such file or folder: {folder}"
        raise InputError(problem, hint="give a file, or the folder that the files are in")
    # Spark skips names with `.` or `_` too: such files are still being written.
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(p[0] in "._" for p in file.relative_to(folder).parts)
    )


def default_tick_us(*, has_stamp: bool) -> int:
    """Return the default tick: 1 ms for stamps, 1 us for times."""
    return 1000 if has_stamp else 1


def read_sample(
    folder: Path, tick_us: int | None, time_unit: TimeUnit | None = None
) -> tuple[Sample, int]:
    """Return the messages in order of `arrived`, or else of files and lines; and the tick.

    The defaults of the tick and of the time unit are those of a run.
    """
    format: Any = find_format(folder)  # the type stubs do not know JSON
    where = str(folder)
    try:
        table = ds.dataset([str(file) for file in list_files(folder)], format=format).to_table()
    except (pa.ArrowException, OSError) as error:
        problem = f"the sample cannot be read: {str(error).splitlines()[0]}"
        hint = "every row of a sample counts: check that its files are complete and of one format"
        raise InputError(problem, where=where, hint=hint) from error
    names = set(table.column_names)
    missing = [n for n in ("process", "past") if n not in names]
    missing += ["stamp` or `time"] if not names & {"stamp", "time"} else []
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise InputError(f"a sample needs the column {listed}", where=where, hint=PAST_HINT)
    if "observer" in names and len(pc.unique(table["observer"])) > 1:
        raise InputError("more than one observer", where=where, hint="give a sample of one")
    _check_units(table, tick_us, time_unit, where)
    tick_us = tick_us or default_tick_us(has_stamp="stamp" in names)
    unit = time_unit or DEFAULT
    process = _whole(table["process"], "process", where)
    past = _past(table["past"], process, where)
    r, c, kn = _stamp(table, tick_us, unit, where)
    if "arrived" in names:
        arrived_us = _micros(table["arrived"], "arrived", unit, where)
        at = np.argsort(arrived_us, kind="stable")
        arrival = arrived_us[at] // tick_us
    else:
        at = np.arange(len(table))
        arrival = np.maximum.accumulate(r + c)
    stamps = Stamps(process[at], r[at], c[at], kn[at])
    return Sample(arrival, stamps, past[at, process[at]], past[at]), tick_us


def guarantees_of(sample: Sample, epsilon: int, delta: int) -> Guarantees:
    """Return guarantees with the processes and the events per tick of the sample."""
    processes = sample.past.shape[1]
    counts = int(sample.stamps.kn.max(initial=1))
    return Guarantees(processes, epsilon, delta, max(-(-counts // processes), 1))


def _check_units(
    table: pa.Table, tick_us: int | None, time_unit: TimeUnit | None, where: str
) -> None:
    """Check the units of times as a run does, with the same errors."""
    unread = {"time"} if "stamp" in table.column_names else set()
    read = {"time", "arrived"} & set(table.column_names) - unread
    numbers = {name: _whole(table[name], name, where) for name in sorted(read)}
    unit = time_unit or DEFAULT
    decide(_spans(numbers), unit, where, is_asked=time_unit is not None)
    if "stamp" in table.column_names and tick_us is None:
        r, _, _ = _stamp(table, 1, unit, where)
        decide(_spans({"stamp.r": r}), "ms", where, is_asked=False, flag="--tick 1")


def _spans(numbers: dict[str, Ints]) -> dict[str, tuple[int, dict[TimeUnit, int]]]:
    return {
        name: (
            len(values),
            {u: int(np.sum((values >= span(u)[0]) & (values <= span(u)[1]))) for u in UNITS},
        )
        for name, values in numbers.items()
    }


def _stamp(table: pa.Table, tick_us: int, unit: TimeUnit, where: str) -> tuple[Ints, Ints, Ints]:
    if "stamp" not in table.column_names:
        r = _micros(table["time"], "time", unit, where) // tick_us
        return r, np.zeros_like(r), np.zeros((len(r), 0), np.int64)
    stamp: Any = table["stamp"].combine_chunks()
    if not pa.types.is_struct(stamp.type) or not {"r", "c", "kn"} <= {f.name for f in stamp.type}:
        raise InputError("`stamp` is not a struct of r, c and kn", where=where)
    r, c = (_whole(pc.struct_field(stamp, name), f"stamp.{name}", where) for name in ("r", "c"))
    lists = pc.struct_field(stamp, "kn")
    return r, c, first_elements(lists, int(pc.max(pc.list_value_length(lists)).as_py() or 0))


def _past(column: Any, process: Ints, where: str) -> Ints:
    lists = column.combine_chunks()
    lengths = pc.unique(pc.list_value_length(lists)).to_pylist()
    if (
        len(lengths) != 1
        or lengths[0] is None
        or not np.all((process >= 0) & (process < lengths[0]))
    ):
        raise InputError("`past` has not one integer for each process", where=where, hint=PAST_HINT)
    return first_elements(lists, lengths[0])


def _whole(column: Any, name: str, where: str) -> Ints:
    if not pa.types.is_integer(column.type) or column.null_count:
        raise InputError(f"`{name}` is not an integer in every row of the sample", where=where)
    return integers(column)


def _micros(column: Any, name: str, unit: TimeUnit, where: str) -> Ints:
    values, us_per = _whole(column, name, where), PER_SECOND["us"] / PER_SECOND[unit]
    if us_per < 1:
        return values // round(1 / us_per)
    if np.abs(values).max(initial=0) > np.iinfo(np.int64).max // round(us_per):
        raise InputError(f"`{name}` is beyond all times in {NAMES[unit]}", where=where)
    return values * round(us_per)
