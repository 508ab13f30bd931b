"""Mappers: what makes schedules of layers on architectures; `cosa.mappers.registry` has them by name."""
