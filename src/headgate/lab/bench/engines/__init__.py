"""Engines that a workload can run on, each in a process of its own."""
