"""What a simulation comes to: where every cycle and byte went, as data, text and pictures."""
