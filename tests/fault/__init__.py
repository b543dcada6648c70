"""Fault tests: processes that are killed, disks that are full, bits that are flipped, and the run after that."""
