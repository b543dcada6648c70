"""Writes the index: a folder of documents goes in, any number of times, with the effect of once."""
