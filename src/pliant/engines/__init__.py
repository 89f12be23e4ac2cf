"""Simulation engines: ways to step a mechanism through time."""
