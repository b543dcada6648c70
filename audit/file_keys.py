"""Which keys a file is opened with: those from outside, or those it holds itself.

Owns: the key rows of `meta` (secrets that the file made, check values of all). Refuses any key but the one that wrote
the file, and to make a new one where the right one lives outside: two id keys would count one call twice.
"""

import sqlite3
from dataclasses import replace

from .errors import AuditIncompatible
from .keys import ChainKey, IdKey, same
from .store import Store

__all__ = ["LOCAL_CHAIN", "settle"]

# The name of a chain key that the file itself holds.
LOCAL_CHAIN = "local"
_ID_KEY, _ID_CHECK, _CHAIN_KEY, _CHAIN_CHECK = "id_key", "id_check", "chain_key", "chain_check."


def settle(store: Store, id_secret: bytes | None, chain: ChainKey | None) -> tuple[IdKey, ChainKey]:
    """The keys to work with; makes and keeps what a new file lacks. Writes only then. Raises AuditIncompatible."""
    with store.read() as conn:
        found = _settled(conn, store, id_secret, chain)
    if found is None:
        with store.write() as tx:
            _keep(tx.conn, id_secret, chain)
            found = _settled(tx.conn, store, id_secret, chain)
    if found is None:
        raise AuditIncompatible(f"audit file {store.path}: its keys live outside; give them")
    return found


def _meta(conn: sqlite3.Connection) -> dict[str, bytes | str]:
    return dict(conn.execute("SELECT name, value FROM meta WHERE name LIKE 'id_%' OR name LIKE 'chain_%'").fetchall())


def _settled(
    conn: sqlite3.Connection, store: Store, id_secret: bytes | None, chain: ChainKey | None
) -> tuple[IdKey, ChainKey] | None:
    """The keys, if the file knows them all already."""
    meta = _meta(conn)
    secret = id_secret if id_secret is not None else meta.get(_ID_KEY)
    chain_secret = meta.get(_CHAIN_KEY)
    own = ChainKey(LOCAL_CHAIN, chain_secret) if isinstance(chain_secret, bytes) else None
    outside = {name for name in meta if name.startswith(_CHAIN_CHECK)} - {_CHAIN_CHECK + LOCAL_CHAIN}
    if chain is None:
        chain = None if outside else own
    elif own is not None and chain.named(LOCAL_CHAIN) is None:
        # A file that began with its own key still verifies after a move to one from outside.
        chain = replace(chain, earlier=(*chain.earlier, own))
    if (
        not isinstance(secret, bytes)
        or chain is None
        or _ID_CHECK not in meta
        or _CHAIN_CHECK + chain.key_id not in meta
    ):
        return None
    ids = IdKey(secret)
    if not same(str(meta[_ID_CHECK]), ids.check_value):
        raise AuditIncompatible(f"audit file {store.path}: another id key wrote it; give that one")
    for key in (chain, *chain.earlier):
        if not same(str(meta.get(_CHAIN_CHECK + key.key_id, key.check_value)), key.check_value):
            raise AuditIncompatible(f"audit file {store.path}: another chain key {key.key_id} wrote it; give that one")
    return ids, chain


def _keep(conn: sqlite3.Connection, id_secret: bytes | None, chain: ChainKey | None) -> None:
    """Make what is missing and may be made here; a key from outside leaves only its check value."""
    meta = _meta(conn)
    rows: dict[str, bytes | str] = {}
    if _ID_CHECK not in meta:
        ids = IdKey(id_secret) if id_secret is not None else IdKey.fresh()
        rows[_ID_CHECK] = ids.check_value
        if id_secret is None:
            rows[_ID_KEY] = ids.secret
    if chain is not None:
        rows[_CHAIN_CHECK + chain.key_id] = chain.check_value
    elif not any(name.startswith(_CHAIN_CHECK) for name in meta):
        own = ChainKey.fresh(LOCAL_CHAIN)
        rows |= {_CHAIN_KEY: own.secret, _CHAIN_CHECK + LOCAL_CHAIN: own.check_value}
    conn.executemany("INSERT OR IGNORE INTO meta(name, value) VALUES(?, ?)", list(rows.items()))
