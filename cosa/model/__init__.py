"""The nouns: layer, architecture, schedule, and the rules they keep to."""
