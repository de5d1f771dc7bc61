package pgengine

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tickonce/tickonce/store"
)

// remedies are for SQLSTATEs and classes of them. What is not listed speaks for
// itself and is tried again.
var remedies = map[string]remedy{
	"08":    {text: lost},
	"25006": {"the server is a replica or the session is read-only: connect to the primary, as target_session_attrs=read-write does", true},
	"26000": {text: shared},
	"28":    {"check the user, the password and the server's pg_hba.conf", true},
	"3D":    {"create the database, or name another", true},
	"3F":    {changed, true},
	"42":    {"", true},
	"42501": {`grant the role what docs/POSTGRES.md lists under "Privileges"`, true},
	"42703": {changed, true},
	"42883": {changed, true},
	"42P01": {changed, true},
	"42P05": {shared, true},
	"53100": {text: "make room on the server's disk"},
	"53300": {text: "lower MaxConns of the pools that use the server, or raise its max_connections"},
	"55P03": {text: "another transaction held what it needs for longer than lock_timeout: pg_stat_activity shows which"},
	"57014": {text: "unless somebody cancelled it, raise the role's statement_timeout, or see in pg_stat_activity who holds a lock"},
}

const (
	lost    = "the connection to the server was lost; whether the statement was done is not known"
	changed = "the schema is not as pgengine.Migrate made it"
	shared  = "a pooler gives the session to several: it takes PgBouncer 1.21 with max_prepared_statements, or default_query_exec_mode=exec in the connection string"
)

// A remedy is what to do about an error, and whether asking again fails alike
// until somebody has done so.
type remedy struct {
	text      string
	permanent bool
}

// storeError is an error with its remedy. It matches [store.ErrPermanent] if
// that says so.
type storeError struct {
	err    error
	remedy remedy
}

func (e *storeError) Error() string {
	if e.remedy.text == "" {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.remedy.text
}

func (e *storeError) Unwrap() error { return e.err }

func (e *storeError) Is(target error) bool {
	return e.remedy.permanent && target == store.ErrPermanent
}

// explain returns an error of pgx with its remedy, if there is one, and is to be
// called once. What a context's end has brought about stays as it is.
func explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		found, ok := remedies[server.Code]
		if !ok {
			found, ok = remedies[server.Code[:min(2, len(server.Code))]]
		}
		if !ok {
			return err
		}
		return &storeError{err, found}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return &storeError{err, remedy{text: "check the address, and whether the server runs"}}
	}
	if broken(err) {
		return &storeError{err, remedy{text: lost}}
	}
	return err
}

// broken reports whether the error has ended a connection that there was.
func broken(err error) bool {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return server.SeverityUnlocalized == "FATAL"
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}
