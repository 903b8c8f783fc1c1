"""What every run is judged by."""
