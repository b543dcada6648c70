"""Gives agents one read-only tool. Reaches no writer of the index, not even through its imports.

``tool`` answers a call, ``contract`` says what a call and an answer look like, ``server`` speaks MCP over stdio and
HTTP, ``adapters`` hold the shapes of function-calling APIs. Importing this package loads none of them.
"""
