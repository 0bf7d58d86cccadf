"""Text files taken apart: bytes, blocks of whole rows, and which rows are none."""
