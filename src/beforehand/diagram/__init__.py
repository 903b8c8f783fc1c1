"""A few events of a log as a space-time diagram for a paper or a bug report.

`runs` and `foreign` choose the events around a violation or a message, `story` lays them out, and
`svg`, `text`, `mermaid` and `tikz` write them.
"""
