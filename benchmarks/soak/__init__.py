"""Soak test with real processes on a faulty network: draw a case, play it, judge the result."""
