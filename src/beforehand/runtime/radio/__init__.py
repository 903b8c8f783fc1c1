"""Cells of mobile hosts on UDP multicast, wires between stations."""
