"""A drill: `ingest audit drill tests.audit.example_drill:mailer` puts this tool through the faults that repeat calls.

The mail service is a file that counts; a host gives its own tool, pointed at a test system, and its own count.
"""

import tempfile
from pathlib import Path

from audit.drills import Drill
from audit.faults import Target

outbox = Target(Path(tempfile.mkdtemp(prefix="outbox-")) / "outbox.jsonl", "lookup")
mailer = Drill(
    tool=outbox.tool(name="mail"),
    args={"order": "R-1", "purpose": "refund", "note": "Your refund is on its way."},
    effects=lambda: len(outbox.acts()),
)
