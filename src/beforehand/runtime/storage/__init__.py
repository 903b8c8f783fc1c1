"""The SQLite file of a member, group commit, and the event log."""
