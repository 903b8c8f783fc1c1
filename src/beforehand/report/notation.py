"""Format numbers in the papers' notation: 1h22', 43'50", 0.5", 62 ms; 106,580; 99.99 %."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from beforehand.interval import margin_of

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
TIMES_US = {"ms": 1_000, "s": SECOND_US, "min": MINUTE_US, "h": HOUR_US}
SIZES_B = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


def show_time(us: float) -> str:
    """Format hours, minutes and seconds in the paper's notation, without trailing zero parts."""
    if math.isnan(us):
        return "–"
    if us < 0:
        return f"-{show_time(-us)}"
    if us == 0:
        return "0"
    if us < 100_000:
        return f"{us / 1000:.3g} ms"
    # Round before comparing, so that 59.97" becomes 1' and not 60".
    if round(us, -5) < MINUTE_US:
        return f'{round(us / SECOND_US, 1):g}"'
    seconds = round(us / SECOND_US)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    text = f"{hours}h{minutes:02}'{seconds:02}\"" if hours else f"{minutes}'{seconds:02}\""
    return text.removesuffix('00"').removesuffix("00'")


def show_lifetime(lifetime_us: int | None) -> str:
    """Format a lifetime as "none" or whole minutes, like the papers, which write 120' and not 2h;
    from 3 h on in hours."""
    if lifetime_us is None:
        return "none"
    if lifetime_us % MINUTE_US or lifetime_us >= 3 * HOUR_US:
        return show_time(lifetime_us)
    return f"{lifetime_us // MINUTE_US}'"


def show_count(value: float) -> str:
    """Format a whole number; a dash for NaN."""
    if math.isnan(value):
        return "–"
    return f"{round(value):,}"


def show_ratio(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{100 * value:.2f} %"


def show_plain(value: float) -> str:
    """Format with three significant digits, or all digits before the point; never with an
    exponent."""
    if math.isnan(value):
        return "–"
    size = abs(value)
    if not size:
        return "0"
    before = math.floor(math.log10(size)) + 1
    return f"{value:,.{min(6, max(0, 3 - before))}f}"


def unit_of(values: Iterable[float], units: Mapping[str, float]) -> tuple[str, float]:
    """Return the unit in which a whole column is printed, and its size.

    The result is the largest unit such that the largest value is at least 2. units: from the
    smallest.
    """
    most = max((value for value in values if not math.isnan(value)), default=0.0)
    fitting = [(unit, size) for unit, size in units.items() if most >= 2 * size]
    return fitting[-1] if fitting else next(iter(units.items()))


def show_clock(us: float) -> str:
    """Format an instant of a trace, whose zero is midnight or the start, as hh:mm."""
    minutes = round(us / MINUTE_US)
    return f"{minutes // 60:02}:{minutes % 60:02}"


def show_interval(
    value: float, margin: float | None, show: Callable[[float], str]
) -> tuple[str, str]:
    """Return the texts of a mean and of its margin, `("44.9", "± 1.2")`. The margin has two
    significant digits, and the mean no digit beyond them. Without a margin the second is empty.

    show: `show_count`, `show_ratio`, `show_plain`, or `In` of a unit.
    """
    if not margin or math.isnan(value):
        return show(value), ""
    size = show.size if isinstance(show, In) else 0.01 if show is show_ratio else 1.0
    end = " %" if show is show_ratio else ""
    place = math.floor(math.log10(margin / size)) - 1
    if place >= 0:
        mean, half = (f"{round(number / size, -place):,.0f}" for number in (value, margin))
        return f"{mean}{end}", f"± {half}{end}"
    text = show(value).removesuffix(end)
    if len(text.partition(".")[2]) > -place:
        text = f"{value / size:,.{-place}f}"
    return f"{text}{end}", f"± {margin / size:.{-place}f}{end}"


@dataclass(frozen=True)
class In:
    """Formats numbers in a unit, with three significant digits."""

    size: float
    """The size of the unit."""

    def __call__(self, value: float) -> str:
        return show_plain(value / self.size)


def show_difference(ours: float, published: float) -> str:
    """Format the difference in per cent of the published value, or as a factor above 100 %."""
    if math.isnan(ours):
        return "–"
    if published == 0:
        return _signed(ours, "+,.3g", "")
    if ours > 2 * published:
        return f"×{ours / published:.3g}"
    return _signed(100 * (ours / published - 1), "+.1f", " %")


def show_points(ours: float, published: float) -> str:
    """Format the difference of two ratios in percentage points."""
    return _signed(100 * (ours - published), "+.2f", " pt")


def show_spread(values: Sequence[float], shape: str) -> str:
    """Format half of the 95 % confidence interval as `± 3`; empty for one seed or equal values.

    shape: the format string of the number.
    """
    margin = margin_of(values)
    return f"± {shape.format(margin)}" if margin else ""


def _signed(value: float, shape: str, unit: str) -> str:
    text = f"{value:{shape}}"
    is_zero = not text.strip("+-0.")
    return "±0" if is_zero else text.replace("-", "−") + unit
