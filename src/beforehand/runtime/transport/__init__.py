"""TCP links between members: dialing, listening, discovery, limits."""
