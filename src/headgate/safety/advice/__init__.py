"""Advice: edits that make a refused query safe, each tried at the gate before it is shown."""
