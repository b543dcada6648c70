"""The shapes of function-calling APIs around one ``lookup``: context to key, definition, result to the caller's shape.

An adapter imports no vendor's SDK and decides nothing: it takes and gives what the SDK itself would, as plain values,
and what a vendor's schema cannot say is checked by ``lookup``. Importing this package loads none of them.
"""
