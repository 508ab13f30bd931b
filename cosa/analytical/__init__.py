"""Pure functions of a layer, an architecture and a nest: footprints, words moved, cycles."""
