"""Group keys and member keys, name-to-key bindings, the handshake, and batch signatures."""
