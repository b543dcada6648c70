"""One SQLite file, `audit.db`, and the only rule by which anybody connects to it.

Owns: the file, connections, transactions, the clock row, the WAL reserve. One connection per process and thread; a
forked child neither uses nor closes an inherited one. Every write is `BEGIN IMMEDIATE`: a deferred transaction that
reads and then writes fails at once with SQLITE_BUSY_SNAPSHOT, whatever the timeout. Refuses ATTACH and DETACH (an
authorizer denies both, and so VACUUM INTO), network file systems (their locks lie), and to stay silent: what SQLite
cannot commit is `AuditUnavailable`.
Source: sqlite.org/wal.html, lang_transaction.html, howtocorrupt.html (2.6: connections and fork).
"""

import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import clock as clocks
from . import schema
from .clock import Clock, SystemClock, Tick
from .errors import AuditError, AuditIncompatible, AuditMissing, AuditUnavailable
from .failpoints import failpoint

__all__ = ["FILE_NAME", "Store", "Transaction"]

log = logging.getLogger(__name__)

FILE_NAME = "audit.db"
# Enough WAL pages for the largest record of an outcome (its result may be dropped), see Store.reserve_wal.
_RESERVE_BYTES = 256 * 1024
# File systems whose locks are known to differ from local ones. WAL needs shared memory, which no network gives.
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "fuse.sshfs", "fuse.glusterfs"})

# Connections that a fork brought along: kept here so that the child's garbage collector never closes them.
_inherited: list[dict[int, sqlite3.Connection]] = []


@dataclass(frozen=True)
class Transaction:
    """An open write transaction: its connection, and the one time that everything in it shares (milliseconds)."""

    conn: sqlite3.Connection
    now_ms: int
    tick: Tick


class Store:
    """The audit file in a folder. Thread-safe; usable after fork; not picklable (a child process opens its own)."""

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = True,
        busy_timeout_s: float = 30.0,
        clock: Clock | None = None,
        create: bool = True,
    ) -> None:
        """Open the file, making folder, file and tables where allowed.

        durable: synchronous=FULL, safe against a power cut; else NORMAL, safe against kill -9 only.
        Raises AuditMissing (create is False and nothing is there), AuditIncompatible, AuditUnavailable.
        """
        self.folder = folder
        self.path = folder / FILE_NAME
        self.clock: Clock = clock or SystemClock()
        self.on_jump: Callable[[Transaction], None] | None = None
        self.on_commit: Callable[[], None] | None = None
        self._durable = durable
        self._busy_timeout_ms = int(busy_timeout_s * 1000)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._connections: dict[int, sqlite3.Connection] = {}
        self._wal_path = folder / f"{FILE_NAME}-wal"
        self._wal_inode = -1
        if not create and not self.path.is_file():
            raise AuditMissing(
                f"audit file {self.path}: not there; it appears with the first audited call or run, or name another"
                " folder"
            )
        with self._mapped(OSError), self._creating():
            conn = self._connect()
            if conn.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                conn.execute("PRAGMA journal_mode = WAL")
            schema.migrate(conn)
            found = self.path.stat()
            self._inode = (found.st_dev, found.st_ino)
            self._wal_inode = self._wal_path.stat().st_ino

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A write transaction: committed at the end, rolled back by any exception.

        Never nested, never held while a tool runs.

        Raises AuditUnavailable when SQLite refuses; then nothing of it was recorded.
        """
        conn = self.connection()
        if conn.in_transaction:
            raise AuditError("audit.db: a transaction inside another; this is an error of the program")
        self._refuse_removed()
        failpoint("store.begin")
        with self._mapped():
            try:
                conn.execute("BEGIN IMMEDIATE")
                tick = clocks.tick(conn, self.clock)
                transaction = Transaction(conn, tick.now_ms, tick)
                if tick.new_jump:
                    log.warning("clock.jump off_ms=%d", tick.jump_ms)
                    if self.on_jump is not None:
                        self.on_jump(transaction)
                yield transaction
                failpoint("store.commit")
                conn.execute("COMMIT")
            except BaseException:
                _roll_back(conn)
                raise
        if self.on_commit is not None:
            self.on_commit()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent snapshot for several queries. Does not write. Raises AuditUnavailable."""
        conn = self.connection()
        with self._mapped():
            conn.execute("BEGIN")
            try:
                yield conn
            finally:
                _roll_back(conn)

    def tick(self) -> Tick:
        """The store's time now, outside a transaction. Does not write."""
        with self._mapped():
            return clocks.peek(self.connection(), self.clock)

    def accept_clock(self) -> int:
        """Take the wall clock as it is after a jump; returns the store's time (milliseconds) from here."""
        conn = self.connection()
        with self._mapped():
            conn.execute("BEGIN IMMEDIATE")
            now = clocks.accept(conn, self.clock).now_ms
            conn.execute("COMMIT")
        return now

    def version(self) -> tuple[int, int]:
        """A value that changes when anybody has committed, this connection included. Does not write."""
        conn = self.connection()
        with self._mapped():
            return int(conn.execute("PRAGMA data_version").fetchone()[0]), conn.total_changes

    def reserve_wal(self) -> None:
        """Grow the WAL while there is room, so that the outcome of an effect still fits when the disk is full later.

        The pages stay in the file: RESTART makes the next writer begin at its front, TRUNCATE would give them back and
        is never used.
        """
        with self.write() as tx:
            tx.conn.execute(
                "INSERT OR REPLACE INTO meta(name, value) VALUES('reserve', zeroblob(?))", (_RESERVE_BYTES,)
            )
        with self.write() as tx:
            tx.conn.execute("DELETE FROM meta WHERE name = 'reserve'")
        with self._mapped():
            self.connection().execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def checkpoint(self) -> bool:
        """Bring the WAL into the main file, durably; False when readers kept a part of it back."""
        with self._mapped():
            busy, pages, moved = self.connection().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return not busy and pages == moved

    def connection(self) -> sqlite3.Connection:
        """The connection of this process and thread, opened at its first use."""
        if self._pid != os.getpid():
            _inherited.append(self._connections)
            self._lock, self._pid, self._connections = threading.Lock(), os.getpid(), {}
        conn = self._connections.get(threading.get_ident())
        if conn is None:
            with self._mapped():
                conn = self._connect()
        return conn

    def close(self) -> None:
        """Close the connections of this process; the store must be idle. A forked child leaves its parent's alone."""
        if self._pid != os.getpid():
            return
        with self._lock:
            while self._connections:
                self._connections.popitem()[1].close()

    def _refuse_removed(self) -> None:
        """Refuse a file, or its WAL, that was removed or replaced under this process.

        What is written there is lost to others.
        """
        try:
            found, wal = self.path.stat(), self._wal_path.stat()
        except OSError as error:
            raise AuditUnavailable(
                f"audit file {error.filename or self.path}: {error.strerror}; nothing was recorded, restart"
            ) from error
        if (found.st_dev, found.st_ino) != self._inode or wal.st_ino != self._wal_inode:
            raise AuditUnavailable(f"audit file {self.path}: replaced while open; nothing was recorded, restart")

    def _connect(self) -> sqlite3.Connection:
        # Shared by number of thread, not by thread: a thread that ended leaves its connection to the next one of its
        # number.
        conn = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_timeout_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            conn.execute("PRAGMA foreign_keys = ON")
            conn.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            conn.set_authorizer(_authorize)
            with self._lock:
                if not self._connections:
                    # The first connection holds the WAL in its place until the last one of this process is closed.
                    conn.execute("SELECT 1 FROM sqlite_schema").fetchone()
                    self._wal_inode = self._wal_path.stat().st_ino if self._wal_path.exists() else -1
                self._connections[threading.get_ident()] = conn
        except BaseException:
            conn.close()
            raise
        return conn

    @contextmanager
    def _creating(self) -> Iterator[None]:
        """Hold the folder's lock while file, journal mode and tables are made.

        Changing to WAL ignores the busy timeout.

        The lock is on the folder, because closing any descriptor of the file itself would drop this process's SQLite
        locks on it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        _refuse_network(self.folder)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not self.path.exists():
                # The file may hold secrets; SQLite gives its -wal and -shm the same mode.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _mapped(self, *more: type[Exception]) -> Iterator[None]:
        """Wrap what SQLite (and `more`) refuses; errors of the program (constraints, misuse) pass unchanged."""
        refused: tuple[type[Exception], ...] = (sqlite3.DatabaseError, *more)
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except refused as error:
            raise AuditUnavailable(f"audit file {self.path}: {error}; nothing was recorded, try again") from error


def _roll_back(conn: sqlite3.Connection) -> None:
    """End the transaction, if there is one still: SQLITE_FULL and some I/O errors have rolled back by themselves."""
    if conn.in_transaction:
        conn.execute("ROLLBACK")


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_DENY if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH) else sqlite3.SQLITE_OK


def _refuse_network(folder: Path) -> None:
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    here = folder.resolve()
    best, kind = -1, ""
    for line in mounts:
        _, point, filesystem, *_ = line.split(" ")
        mount = Path(point.replace("\\040", " "))
        if here.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), filesystem
    if kind in _NETWORK:
        raise AuditIncompatible(
            f"audit folder {folder}: on a network file system ({kind}), whose locks cannot be trusted; use a local one"
        )
