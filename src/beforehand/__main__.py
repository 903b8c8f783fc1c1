"""Entry point of `python -m beforehand`."""

from __future__ import annotations

import sys

from beforehand.cli import main

sys.exit(main())
