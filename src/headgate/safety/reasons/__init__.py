"""Reasons why a state is bounded: windows and time, few values, finite memory, promises that let rows be purged."""
