package pgengine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tickonce/tickonce"
)

// DefaultSchema is the schema of those who name none.
const DefaultSchema = "tickonce"

// maxIdentifier is how many bytes of a name PostgreSQL keeps.
const maxIdentifier = 63

// A Database begins transactions, as a [pgx.Conn] and a pgxpool.Pool do.
type Database interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}

// Migrate makes the schema, or brings one of an older version to the version of
// this program, and returns the names of the migrations that this took: none
// where nothing was to do. Each of them is done wholly or not at all. Whoever
// was told of an error can call it again; several may at once, from any number
// of processes, and wait for each other.
//
// The schema's name is "" for [DefaultSchema], or any that PostgreSQL keeps: at
// most 63 bytes of UTF-8. The schema is for the engine alone: one that holds
// anything else is refused. It need not exist; to make it takes the privilege
// CREATE on the database, and to migrate one that exists it takes being its
// owner. Running engines need less, see docs/POSTGRES.md.
//
// A newer schema is refused by a [*VersionError].
func Migrate(ctx context.Context, db Database, schema string) (applied []string, err error) {
	return migrate(ctx, db, schema, migrations)
}

// VersionError says that a schema is not of the version that the program needs.
type VersionError struct {
	Schema        string
	Found, Wanted int // 0: the schema is not there, or is empty
}

func (e *VersionError) Error() string {
	switch {
	case e.Found == 0:
		return fmt.Sprintf("schema %q has no tables of tickonce: call pgengine.Migrate, or name the schema that has them", e.Schema)
	case e.Found < e.Wanted:
		return fmt.Sprintf("schema %q is of version %d, older than the version %d of this program: call pgengine.Migrate", e.Schema, e.Found, e.Wanted)
	default:
		return fmt.Sprintf("schema %q is of version %d, newer than the version %d of this program: run a newer program", e.Schema, e.Found, e.Wanted)
	}
}

// A migration leads from the version before it to its own. Its statements see
// the schema as their search path.
type migration struct {
	version int
	name    string
	sql     string
}

//go:embed migrations
var files embed.FS

var migrations = must(readMigrations(files))

func must(read []migration, err error) []migration {
	if err != nil {
		panic(err)
	}
	return read
}

// readMigrations returns what the files migrations/0001_name.sql and so on say,
// in their order.
func readMigrations(files fs.FS) (read []migration, err error) {
	names, err := fs.Glob(files, "migrations/*.sql") // in the order of their names
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		m := migration{version: i + 1, name: strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql"), sql: string(sql)}
		if want := fmt.Sprintf("%04d_", m.version); !strings.HasPrefix(m.name, want) {
			return nil, fmt.Errorf("pgengine: the migration %s does not begin with %s", m.name, want)
		}
		read = append(read, m)
	}
	return read, nil
}

func migrate(ctx context.Context, db Database, schema string, migrations []migration) (applied []string, err error) {
	if db == nil {
		err = &tickonce.OptionError{Option: "db", Problem: "is nil, want a pool or a connection"}
	} else {
		schema, err = checkedSchema(schema)
	}
	if err != nil {
		return nil, fmt.Errorf("pgengine: migrate: %w", err)
	}
	for {
		name, err := migrateOnce(ctx, db, schema, migrations)
		if err != nil {
			return applied, fmt.Errorf("pgengine: migrate: %w", err)
		}
		if name == "" {
			return applied, nil
		}
		applied = append(applied, name)
	}
}

// migrateOnce does the first of the migrations that the schema does not have,
// and returns its name, or "".
func migrateOnce(ctx context.Context, db Database, schema string, migrations []migration) (name string, err error) {
	// Read committed: what others did is seen as soon as they gave up the lock.
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return "", explain(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := checkServer(ctx, tx); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, "select "+unlessFrozen); err != nil {
		return "", explain(err)
	}
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('tickonce: ' || $1::text, 0))", schema); err != nil {
		return "", explain(err)
	}
	found, err := schemaVersion(ctx, tx, schema)
	switch {
	case err != nil:
		return "", err
	case found > len(migrations):
		return "", &VersionError{Schema: schema, Found: found, Wanted: len(migrations)}
	case found == len(migrations):
		return "", nil
	}
	if found == 0 {
		if err := makeSchema(ctx, tx, schema); err != nil {
			return "", err
		}
	}
	next := migrations[found]
	path := pgx.Identifier{schema}.Sanitize()
	if _, err = tx.Exec(ctx, "set local search_path = "+path); err == nil {
		_, err = tx.Exec(ctx, next.sql)
	}
	if err == nil {
		_, err = tx.Exec(ctx, "insert into "+path+".migration (version, name) values ($1, $2)", next.version, next.name)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", next.name, explain(err))
	}
	return next.name, nil
}

// makeSchema makes the schema, where it is not there, and its table of versions.
func makeSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	var exists, holds bool
	err := tx.QueryRow(ctx, `
with n as (select oid from pg_namespace where nspname = $1)
select exists (select from n), exists (select from pg_class where relnamespace in (select oid from n))
  or exists (select from pg_type where typnamespace in (select oid from n)) or exists (select from pg_proc where pronamespace in (select oid from n))`,
		schema).Scan(&exists, &holds)
	if err != nil {
		return explain(err)
	}
	if holds {
		return fmt.Errorf("schema %q holds what others have made: name one that does not exist, or is empty", schema)
	}
	name := pgx.Identifier{schema}.Sanitize()
	if !exists { // "if not exists" would ask for the privilege to make one even where it is there
		if _, err := tx.Exec(ctx, "create schema "+name); err != nil {
			return explain(err)
		}
	}
	_, err = tx.Exec(ctx, "create table "+name+`.migration (
  version int primary key,
  name text not null,
  migrated_at timestamptz not null default now()
)`)
	return explain(err)
}

// schemaVersion returns the version of the schema, 0 for one that is not there
// or not the engine's.
func schemaVersion(ctx context.Context, tx pgx.Tx, schema string) (version int, err error) {
	var exists bool
	err = tx.QueryRow(ctx, `
select count(*) = 3 from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = 'migration' and (a.attname, a.atttypid::regtype) in (
  ('version', 'int'::regtype), ('name', 'text'::regtype), ('migrated_at', 'timestamptz'::regtype))`,
		schema).Scan(&exists)
	if err == nil && exists {
		err = tx.QueryRow(ctx, "select coalesce(max(version), 0) from "+pgx.Identifier{schema, "migration"}.Sanitize()).Scan(&version)
	}
	return version, explain(err)
}

// checkedSchema returns the schema of the name, if it is one that PostgreSQL
// would neither change nor take for another.
func checkedSchema(name string) (schema string, err error) {
	if name == "" {
		return DefaultSchema, nil
	}
	problem := ""
	switch {
	case len(name) > maxIdentifier:
		problem = fmt.Sprintf("is of %d bytes, at most %d are allowed", len(name), maxIdentifier)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		problem = "is no UTF-8 text without NUL"
	case strings.HasPrefix(name, "pg_"):
		problem = `begins with "pg_", as PostgreSQL's own do`
	case name == "$user":
		problem = "stands for another schema in a search path"
	default:
		return name, nil
	}
	return "", errors.New("the name of a schema " + problem + ": " + fmt.Sprintf("%q", name))
}
