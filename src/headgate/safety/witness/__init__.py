"""Witnesses: for a refused query, rows of its own streams that every correct algorithm has to remember."""
