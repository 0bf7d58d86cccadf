"""Event time: what conditions on it say of when rows can still meet, and of which groups can still change."""
