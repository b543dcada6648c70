"""``python -m agent_tool``."""

from .cli import main

if __name__ == "__main__":
    main()
