"""From points to rows of figures: schedule, evaluate; whole networks."""
