"""The parts of world `cells`."""
