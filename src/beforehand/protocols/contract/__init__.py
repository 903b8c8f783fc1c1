"""The contract of a protocol core, and the driver that runs one."""
