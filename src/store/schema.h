/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the store, version by version. What a version has made is never changed; a new
 * version is the statements that lead from the last one to it. */
#pragma once

#define SCHEMA_APPLICATION 0x676c7662 /* "glvb": so that file(1) and we know whose it is */

static const char *const schema_versions[] = {
	/* 1 */
	"CREATE TABLE keys ("
	" id TEXT PRIMARY KEY,"
	" name TEXT NOT NULL,"
	" prefix INTEGER NOT NULL," /* of the hash: what is looked up */
	" hash BLOB NOT NULL UNIQUE,"
	" scopes INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" revoked_ms INTEGER NOT NULL,"
	" last_used_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX keys_by_prefix ON keys (prefix);"
	"CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked_ms = 0 AND name <> '';"

	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY,"
	" key_id TEXT NOT NULL REFERENCES keys (id),"
	" template_id TEXT NOT NULL,"
	" alias TEXT,"
	" metadata TEXT,"
	" env TEXT,"
	" config TEXT,"
	" envd_token TEXT,"
	" traffic_token TEXT,"
	" state INTEGER NOT NULL,"
	" started_ms INTEGER NOT NULL,"
	" end_ms INTEGER NOT NULL,"
	" reason INTEGER NOT NULL,"
	" detail TEXT"
	") STRICT;"
	"CREATE INDEX sandboxes_by_state ON sandboxes (state, end_ms);"

	"CREATE TABLE snapshots ("
	" seq INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" key_id TEXT NOT NULL REFERENCES keys (id),"
	" sandbox_id TEXT NOT NULL,"
	" name TEXT,"
	" config TEXT,"
	" created_ms INTEGER NOT NULL"
	") STRICT;"

	"CREATE TABLE events ("
	" seq INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL,"
	" key_id TEXT NOT NULL,"
	" sandbox_id TEXT NOT NULL,"
	" type TEXT NOT NULL,"
	" data TEXT,"
	" at_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX events_by_key ON events (key_id, seq);"
	"CREATE INDEX events_by_sandbox ON events (sandbox_id, seq);"

	"CREATE TABLE webhooks ("
	" seq INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" key_id TEXT NOT NULL REFERENCES keys (id),"
	" name TEXT NOT NULL,"
	" url TEXT NOT NULL,"
	" secret TEXT,"
	" types TEXT,"
	" enabled INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL"
	") STRICT;",

	/* 2 */
	"CREATE TABLE secrets ("
	" seq INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" key_id TEXT NOT NULL REFERENCES keys (id),"
	" name TEXT NOT NULL,"
	" version INTEGER NOT NULL,"
	" metadata TEXT NOT NULL,"
	" sealed BLOB NOT NULL,"
	" created_ms INTEGER NOT NULL,"
	" updated_ms INTEGER NOT NULL,"
	" UNIQUE (key_id, name)"
	") STRICT;",

	/* 3: what is left out of a list of events, and how many things a key has, is seen in an
	 * index alone. */
	"DROP INDEX events_by_key;"
	"CREATE INDEX events_by_key ON events (key_id, seq, type);"
	"DROP INDEX events_by_sandbox;"
	"CREATE INDEX events_by_sandbox ON events (sandbox_id, seq, key_id, type);"
	"CREATE INDEX sandboxes_ended ON sandboxes (key_id, end_ms, state) WHERE state = 3;",

	/* 4: what stands on a layer is looked up, not searched for. The database itself keeps that,
	 * so it cannot be forgotten. The list of layers (a JSON array, as in config) is a column
	 * for this: config can be large. */
	"CREATE INDEX snapshots_by_key ON snapshots (key_id);"
	"CREATE INDEX snapshots_by_name ON snapshots (key_id, name);"
	"ALTER TABLE snapshots ADD COLUMN layers TEXT;"
	"ALTER TABLE sandboxes ADD COLUMN layers TEXT;"
	"UPDATE snapshots SET layers = json_extract(config, '$.layers');"
	"UPDATE sandboxes SET layers = json_extract(config, '$.layers') WHERE state < 3;"
	"CREATE TABLE layer_users ("
	" layer TEXT NOT NULL,"
	" user TEXT NOT NULL," /* a sandbox that has not ended, or a snapshot */
	" PRIMARY KEY (layer, user)"
	") STRICT, WITHOUT ROWID;"
	"CREATE INDEX layer_users_by_user ON layer_users (user);"
	"INSERT INTO layer_users SELECT id, id FROM snapshots;"
	"INSERT OR IGNORE INTO layer_users SELECT l.value, s.id"
	" FROM snapshots s, json_each(s.layers) l WHERE l.type = 'text';"
	"INSERT OR IGNORE INTO layer_users SELECT l.value, s.id"
	" FROM sandboxes s, json_each(s.layers) l WHERE s.state < 3 AND l.type = 'text';"
	"CREATE TRIGGER snapshot_added AFTER INSERT ON snapshots BEGIN"
	" INSERT INTO layer_users VALUES (NEW.id, NEW.id);"
	" INSERT OR IGNORE INTO layer_users SELECT l.value, NEW.id FROM json_each(NEW.layers) l"
	"  WHERE l.type = 'text';"
	" END;"
	"CREATE TRIGGER snapshot_removed AFTER DELETE ON snapshots BEGIN"
	" DELETE FROM layer_users WHERE user = OLD.id;"
	" END;"
	"CREATE TRIGGER sandbox_added AFTER INSERT ON sandboxes WHEN NEW.state < 3 BEGIN"
	" INSERT OR IGNORE INTO layer_users SELECT l.value, NEW.id FROM json_each(NEW.layers) l"
	"  WHERE l.type = 'text';"
	" END;"
	"CREATE TRIGGER sandbox_changed AFTER UPDATE OF state, layers ON sandboxes"
	" WHEN (OLD.state < 3) <> (NEW.state < 3) OR OLD.layers IS NOT NEW.layers BEGIN"
	" DELETE FROM layer_users WHERE user = NEW.id;"
	" INSERT OR IGNORE INTO layer_users SELECT l.value, NEW.id FROM json_each(NEW.layers) l"
	"  WHERE NEW.state < 3 AND l.type = 'text';"
	" END;"
	"CREATE TRIGGER sandbox_removed AFTER DELETE ON sandboxes WHEN OLD.state < 3 BEGIN"
	" DELETE FROM layer_users WHERE user = OLD.id;"
	" END;",

	/* 5: how many events each key has is known, however many there are: it is asked every few
	 * seconds. */
	"CREATE TABLE event_counts ("
	" key_id TEXT PRIMARY KEY,"
	" n INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;"
	"INSERT INTO event_counts SELECT key_id, count(*) FROM events GROUP BY key_id;"
	"CREATE TRIGGER event_added AFTER INSERT ON events BEGIN"
	" INSERT INTO event_counts VALUES (NEW.key_id, 1)"
	"  ON CONFLICT (key_id) DO UPDATE SET n = n + 1;"
	" END;"
	"CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN"
	" UPDATE event_counts SET n = n - 1 WHERE key_id = OLD.key_id;"
	" DELETE FROM event_counts WHERE key_id = OLD.key_id AND n = 0;"
	" END;",
};
