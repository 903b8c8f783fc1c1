"""Read text tables: separator, header, columns by any known name, and doubts about them."""
