"""The rules by which the checkers judge every run."""
