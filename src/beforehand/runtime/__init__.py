"""Groups on real sockets: keys and trust, sealed links, and what is built on them."""
