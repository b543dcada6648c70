"""Benchmarks: speed and memory as ratios within one run, quality beside baselines. Not tests; nothing is asserted."""
