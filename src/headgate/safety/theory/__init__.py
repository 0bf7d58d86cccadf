"""The decision procedures of the documents, free of plans: bounded memory, and safety by punctuation."""
