/**
 * The schema of PostgreSQL: the tables of store/sql/tables.ts, and those that only several hubs need. The table
 * schema_version keeps its number.
 *
 * Text is compared byte by byte (COLLATE "C"), as SQLite and the rules do. Numbers are BIGINT, but for those that the
 * driver is to return as numbers.
 */
import { type Schema, addTraces, createTables } from "../sql/schema.ts";
import { NODES } from "../sql/tables.ts";

const NEW_IDENTITY = "replace(gen_random_uuid()::text, '-', '')";

const OWN_TABLES = `
  CREATE TABLE blobs (
    blob_id TEXT COLLATE "C" PRIMARY KEY,
    size_bytes BIGINT,                       -- NULL: not finished
    touched_at TIMESTAMPTZ NOT NULL          -- when its hub last told that it is being written
  );
  -- what is looked at together for bytes without a record (postgres.ts of blobs/)
  CREATE INDEX blobs_shelf ON blobs (right(blob_id, 2));
  CREATE INDEX blobs_unfinished ON blobs (touched_at) WHERE size_bytes IS NULL;
  CREATE TABLE blob_chunks (
    blob_id TEXT COLLATE "C" NOT NULL REFERENCES blobs ON DELETE CASCADE,
    n INTEGER NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (blob_id, n)
  );
  -- As they are: most files that are large are compressed already.
  ALTER TABLE blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

  -- The hubs, and which group of each was the last to be committed (postgres.ts).
  CREATE TABLE hubs (
    hub_id TEXT COLLATE "C" PRIMARY KEY,
    last_group BIGINT NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL,
    marks TEXT                               -- what service/same-secrets.ts compares; NULL when the hub has ended
  );

  -- Whose the periodic work is (store/postgres/leader-election.ts).
  CREATE TABLE turn (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    holder TEXT NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL
  );
  INSERT INTO turn VALUES (1, '', '-infinity', '-infinity');`;

/** The bytes of each key's stored answers: the commit that stores one may delete the oldest. */
const ANSWER_TRIGGERS = `
  CREATE FUNCTION answers_entered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO answer_totals SELECT key_id, sum(bytes) FROM entered GROUP BY key_id
      ON CONFLICT (key_id) DO UPDATE SET bytes = answer_totals.bytes + excluded.bytes;
    RETURN NULL;
  END $$;
  CREATE FUNCTION answers_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes + changed.bytes FROM (
      SELECT key_id, sum(bytes) AS bytes FROM (
        SELECT key_id, bytes FROM entered UNION ALL SELECT key_id, -bytes FROM gone) AS each
      GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
  CREATE FUNCTION answers_left() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE answer_totals t SET bytes = t.bytes - changed.bytes
      FROM (SELECT key_id, sum(bytes) AS bytes FROM gone GROUP BY key_id) AS changed
    WHERE t.key_id = changed.key_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER answers_entered AFTER INSERT ON answers REFERENCING NEW TABLE AS entered
    FOR EACH STATEMENT EXECUTE FUNCTION answers_entered();
  CREATE TRIGGER answers_changed AFTER UPDATE ON answers REFERENCING NEW TABLE AS entered OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION answers_changed();
  CREATE TRIGGER answers_left AFTER DELETE ON answers REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION answers_left();`;

/** Keys and the index of available nodes as on SQLite, and no defaults that no statement needs. */
const from53 = (): string => `
  ALTER TABLE nodes DROP CONSTRAINT nodes_pkey, DROP CONSTRAINT nodes_seq_key, ADD PRIMARY KEY (seq), ADD UNIQUE (node_id);
  DROP INDEX nodes_available;
  CREATE INDEX nodes_available ON nodes ${NODES.options.indexes?.["nodes_available"]};
  ALTER TABLE answers ALTER key_id DROP DEFAULT, ALTER bytes DROP DEFAULT;
  ALTER TABLE tasks ALTER creator_verified DROP DEFAULT, ALTER failures DROP DEFAULT, ALTER restarts DROP DEFAULT,
    ALTER epoch DROP DEFAULT, ALTER unmet DROP DEFAULT;
  ${addTraces()}`;

export const POSTGRES_SCHEMA: Schema = {
  version: 55,
  create: () => createTables("postgresql", NEW_IDENTITY) + OWN_TABLES + ANSWER_TRIGGERS,
  // 0.1.0 had no PostgreSQL
  steps: { 53: from53 },
};
