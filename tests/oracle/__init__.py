"""What a CQL query over timed input answers, by definition: an independent judge for every engine.

It shares only the syntax tree with Headgate. Window contents come from their definitions, the answer over them from
DuckDB, and everything is plain enough to be checked by reading: rows are looped over, contents are recounted.
"""
