"""TCP links between members: dialling, listening, discovery, limits."""
