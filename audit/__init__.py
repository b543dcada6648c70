"""Once-only writes around an agent: events, usage, the action ledger. Imports no sibling package."""
