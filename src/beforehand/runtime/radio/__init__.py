"""Cells of mobile hosts on UDP multicast, and reliable channels between stations."""
