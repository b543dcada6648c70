"""The sample corpus, its sources and the questions that it can and cannot answer."""
