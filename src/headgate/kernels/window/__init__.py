"""Windows: from streams to relations, by time and by number of rows."""
