package pgengine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// oldestServer is the oldest version of the server that knows all that the
// migrations and statements use.
const oldestServer = 14

// check reports all that keeps an engine from running in the schema, so that it
// shows at the start and not at the first write.
func check(ctx context.Context, db Database, schema string, wanted int) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return explain(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	return errors.Join(checkServer(ctx, tx), checkIsolation(ctx, tx), checkSchema(ctx, tx, schema, wanted))
}

// checkIsolation reports sessions whose statements do not see what was committed
// before them: a row that somebody else has written would be an error there, and
// not one to judge anew.
func checkIsolation(ctx context.Context, tx pgx.Tx) error {
	var role, isolation string
	err := tx.QueryRow(ctx, "select current_user, current_setting('default_transaction_isolation')").Scan(&role, &isolation)
	if err != nil {
		return explain(err)
	}
	if isolation != "read committed" {
		return fmt.Errorf("the transactions of the role %q are %s by default, want read committed: take default_transaction_isolation from the role, its database or the connection string", role, isolation)
	}
	return nil
}

// checkServer reports a server that is too old, does not keep UTF-8, or takes no
// writes.
func checkServer(ctx context.Context, tx pgx.Tx) error {
	var role, encoding string
	var version int
	var replica, readOnly bool
	err := tx.QueryRow(ctx, `
select current_user, current_setting('server_encoding'), current_setting('server_version_num')::int / 10000,
  pg_is_in_recovery(), current_setting('transaction_read_only')::bool`).
		Scan(&role, &encoding, &version, &replica, &readOnly)
	if err != nil {
		return explain(err)
	}
	var faults []error
	if version < oldestServer {
		faults = append(faults, fmt.Errorf("the server is of version %d, want %d or later", version, oldestServer))
	}
	if encoding != "UTF8" {
		faults = append(faults, fmt.Errorf("the encoding of the database is %s, want UTF8: make one that has it", encoding))
	}
	if replica {
		faults = append(faults, errors.New("the server is a replica, which takes no writes: connect to the primary, as target_session_attrs=read-write does"))
	} else if readOnly {
		faults = append(faults, fmt.Errorf("the sessions of the role %q are read-only: take default_transaction_read_only from the role, its database or the connection string", role))
	}
	return errors.Join(faults...)
}

// checkSchema reports another version of the schema, or privileges on it that
// the role lacks.
func checkSchema(ctx context.Context, tx pgx.Tx, schema string, wanted int) error {
	var role string
	var exists, usable bool
	var lacking []string
	err := tx.QueryRow(ctx, `
select current_user, n.oid is not null, coalesce(has_schema_privilege(n.oid, 'usage'), false),
  array(
    select string_agg(p.name, ', ' order by p.rank) || case c.relkind when 'S' then ' on sequence ' else ' on ' end || c.relname
    from pg_class c, unnest(case
        when c.relkind = 'S' then '{usage}'::text[]
        when c.relname = 'migration' then '{select}'
        else '{select,insert,update,delete}'
      end) with ordinality p(name, rank)
    where c.relnamespace = n.oid and case
        when c.relkind = 'S' then not has_sequence_privilege(c.oid, p.name)
        else c.relkind in ('r', 'p') and not has_table_privilege(c.oid, p.name)
      end
    group by c.relkind, c.relname order by c.relname)
  || array(
    select 'execute on function ' || p.proname
    from pg_proc p where p.pronamespace = n.oid and not has_function_privilege(p.oid, 'execute')
    order by p.proname)
from (select) as always left join pg_namespace n on n.nspname = $1`, schema).
		Scan(&role, &exists, &usable, &lacking)
	if err != nil {
		return explain(err)
	}
	switch remedy := remedies["42501"].text; {
	case !exists:
		return &VersionError{Schema: schema, Wanted: wanted}
	case !usable:
		return fmt.Errorf("the role %q lacks usage on schema %q: %s", role, schema, remedy)
	case len(lacking) > 0:
		return fmt.Errorf("in schema %q the role %q lacks %s: %s", schema, role, strings.Join(lacking, "; "), remedy)
	}
	found, err := schemaVersion(ctx, tx, schema)
	if err == nil && found != wanted {
		err = &VersionError{Schema: schema, Found: found, Wanted: wanted}
	}
	return err
}
