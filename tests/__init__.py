"""The tests of grounded-ingest."""
