"""Keys of groups and members, trust, the handshake, batch signatures."""
