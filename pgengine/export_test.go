package pgengine

import "github.com/jackc/pgx/v5"

// Table is the name of a table, quoted.
func (e *Engine) Table(name string) string { return pgx.Identifier{e.store.schema, name}.Sanitize() }
