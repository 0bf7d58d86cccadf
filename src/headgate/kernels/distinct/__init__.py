"""DISTINCT and EXCEPT: values, and how many copies of each are there."""
