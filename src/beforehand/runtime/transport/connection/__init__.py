"""One connection: its socket, its handshake, its records and its queues."""
