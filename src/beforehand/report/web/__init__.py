"""The page: a template, a style sheet and a script."""
