"""From relations back to streams: ISTREAM, DSTREAM, RSTREAM and WSTREAM."""
