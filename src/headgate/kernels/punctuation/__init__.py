"""Punctuations: which values a stream has closed, told from its order, its clusters, its age and the clock."""
