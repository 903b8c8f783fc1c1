"""Project longitude and latitude to metres, for areas the size of a city."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError

Floats = NDArray[np.float64]

EARTH_RADIUS_M = 6_371_008.8
"""The mean radius of the Earth in metres."""

STRETCH_REPORTED = 0.01
STRETCH_MAX = 0.25
"""Relative errors of east-west distances at the northern or southern edge of the map.

Above `STRETCH_REPORTED` the reader reports the error; above `STRETCH_MAX` it rejects the file.
"""


def project(lon: Floats, lat: Floats) -> tuple[Floats, Floats]:
    """Return x (east) and y (north) in metres from the middle of the points."""
    return project_around(lon, lat, *middle(lon, lat))


def middle(lon: Floats, lat: Floats) -> tuple[float, float]:
    """Return the middle of the smallest area that holds all points, even across the date line."""
    ordered = np.unique(lon)
    west, east = float(ordered[0]), float(ordered[-1])
    gaps = np.diff(ordered)
    if len(gaps) and gaps.max() > west + 360.0 - east:
        after = int(np.argmax(gaps))
        west, east = float(ordered[after + 1]), float(ordered[after]) + 360.0
    lon_middle = (west + east) / 2
    return (
        lon_middle - 360.0 if lon_middle > 180.0 else lon_middle,
        float(lat.min() + lat.max()) / 2,
    )


def project_around(
    lon: Floats, lat: Floats, lon_middle: float, lat_middle: float
) -> tuple[Floats, Floats]:
    # Wrap the difference to ±180 degrees: across the date line the short way is right.
    east = np.remainder(lon - lon_middle + 180.0, 360.0) - 180.0
    x = np.radians(east) * EARTH_RADIUS_M * math.cos(math.radians(lat_middle))
    return x, np.radians(lat - lat_middle) * EARTH_RADIUS_M


def check_area(lon: Floats, lat: Floats, where: str) -> list[str]:
    """Return notes about the distortion of the flat map.

    Raise InputError if the area is too wide for one flat map.
    """
    _, lat_middle = middle(lon, lat)
    ends = np.radians([lat.min(), lat.max()])
    widths = np.maximum(np.cos(ends), 1e-9)
    stretch = float(np.abs(math.cos(math.radians(lat_middle)) / widths - 1).max())
    if stretch > STRETCH_MAX:
        span = f"latitudes from {lat.min():g} to {lat.max():g}"
        raise InputError(
            f"too wide an area for one flat map: {span}",
            where=where,
            hint="cut the file to one region, and look for places at 0, 0",
        )
    if stretch > STRETCH_REPORTED:
        return [
            f"one flat map for the whole area: distances from east to west are off by up to "
            f"{100 * stretch:.0f} % at its ends"
        ]
    return []
