"""Judge logs. The package can be called: `beforehand.verify(log)` is `verify_events(log)`."""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    import pandas as pd
    import pyarrow as pa

    from beforehand.verify.verdict import Verdict


class CallablePackage(ModuleType):
    """This package, which is also the function that most programs need of it."""

    def __call__(
        self, log: str | os.PathLike[str] | pa.Table | pd.DataFrame, **options: Any
    ) -> Verdict:
        """Return the verdict on a log. The options are those of `verify_events`."""
        from beforehand.verify.verdict import verify_events

        return verify_events(log, **options)


verify = sys.modules[__name__]
"""The name by which `beforehand` imports it."""
verify.__class__ = CallablePackage
