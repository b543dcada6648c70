"""The index format, and everything that reads it. Imports no sibling package and never writes an index."""
