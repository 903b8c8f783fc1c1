"""Import a public name when it is first used.

Some modules need optional packages. A command should also import little before it has installed its
signal handlers. So the packages with public names import nothing themselves.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Replaces `typing.TYPE_CHECKING`: importing `typing` takes longer than `import beforehand`."""
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

EXTRAS = {
    "lab": "sim",
    "lab.report": "pipeline,report",
    "mobility": "sim",
    "observe": "pipeline",
    "pipeline": "pipeline",
    "report": "report",
    "runtime": "runtime",
    "sim": "sim",
    "verify": "sim",
}
"""The extras that install the packages of each folder or module; all others need none."""


def importer(
    package: str, names: dict[str, Any], modules: Mapping[str, str]
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    - `package`: the name of the package.
    - `names`: the globals of the package, where a name is kept once it is imported.
    - `modules`: the module of each public name below `beforehand`; `MODULE:NAME` if the name
      differs there.

    If a package of others is missing, `__getattr__` raises `ModuleNotFoundError` with the command
    that installs it.
    """

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        from importlib import import_module

        module, _, attribute = modules[name].partition(":")
        try:
            found = getattr(import_module(f"beforehand.{module}"), attribute or name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            extra = EXTRAS.get(module) or EXTRAS.get(module.partition(".")[0])
            if extra is None or missing == "beforehand":
                raise
            problem = f"`{package}.{name}` needs `{missing}`: pip install 'beforehand[{extra}]'"
            raise ModuleNotFoundError(problem, name=missing) from error
        names[name] = found
        return found

    return import_name
