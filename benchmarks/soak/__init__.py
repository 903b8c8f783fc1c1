"""Real processes on a network that is bad on purpose: what is drawn, played and judged."""
