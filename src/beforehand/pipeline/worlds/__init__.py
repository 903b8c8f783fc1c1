"""One file for each kind of experiment; its name is that of the world in scenario files.

`status` and `report` read these files too: what is heavy is imported inside of functions.
"""
