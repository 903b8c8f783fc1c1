"""Random runs of nets, codecs and links, and how failures are shrunk."""
