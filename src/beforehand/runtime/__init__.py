"""Members on real networks: keys, encrypted links, durable storage, and the public classes."""
