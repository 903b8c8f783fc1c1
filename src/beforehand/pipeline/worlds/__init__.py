"""One module for each kind of experiment; scenario files refer to a world by the module's name.

`status` and `report` also import these modules, so heavy imports are inside functions.
"""
