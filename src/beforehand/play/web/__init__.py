"""The page: a template, a style sheet, and JavaScript modules of one responsibility each."""
