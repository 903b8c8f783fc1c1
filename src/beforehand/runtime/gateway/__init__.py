"""A local HTTP and WebSocket gateway to a group, for browsers and other languages."""
