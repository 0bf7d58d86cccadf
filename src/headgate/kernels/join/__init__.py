"""Joins of any number of inputs, with tables, and EXISTS and NOT EXISTS; what each may purge."""
