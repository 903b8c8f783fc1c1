"""Random runs of nets, codecs and links, and the shrinking of failures."""
