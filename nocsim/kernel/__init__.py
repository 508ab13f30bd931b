"""Compiled cycle loops."""
