"""A run as one offline HTML page that plays it: map, space-time diagram, timeline and search.

`gather` reads the tables of a run, `encode` turns them into a pack of columns, and `page` puts the
pack and the modules of `web` into one file. Pages for other kinds of logs are refused by name.
"""
