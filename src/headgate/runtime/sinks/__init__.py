"""Where a query's output can go besides files."""
