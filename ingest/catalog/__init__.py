"""The catalog: the SQLite file that is the truth of an index. Only ``ingest`` opens it, and only one run writes it."""
