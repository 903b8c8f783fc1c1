"""The SQLite store of a member, group commit, and the event log."""
