"""Sources of the engine on Spark besides files: what Spark streams, and how it becomes declared rows."""
