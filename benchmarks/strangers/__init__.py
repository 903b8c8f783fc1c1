"""Those who misbehave against a live node."""
