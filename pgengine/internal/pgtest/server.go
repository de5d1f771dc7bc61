package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// settings are those of every server.
const settings = `
listen_addresses = ''
unix_socket_directories = '%s'
max_connections = 200
shared_buffers = 32MB
fsync = off
`

// Superuser is the role that may everything, and the name of its database.
const Superuser = "postgres"

// Server is a server of the tests' own.
type Server struct {
	bin, folder string
	as          *syscall.Credential
	guard       io.Closer
	guarded     *exec.Cmd
	proxies     atomic.Int32
}

// Start starts a server that the test has for itself, and stops and removes it
// when the test ends. The settings are lines of a postgresql.conf.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return s
}

func start(more []string) (*Server, error) {
	bin, err := installed()
	if err != nil {
		return nil, err
	}
	as, err := account()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, folder: folder, as: as}
	if as != nil {
		err = os.Chown(folder, int(as.Uid), int(as.Gid))
	}
	if err = errors.Join(err, s.watch()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := s.prepare(more); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// watch starts the program that removes the server once the guard is closed, as
// the end of this process does too, be it by a panic or a signal.
func (s *Server) watch() error {
	s.guarded = s.command("/bin/sh", "-c", `cat >/dev/null
[ ! -e data/postmaster.pid ] || "$0/pg_ctl" stop --silent --pgdata=data --mode=immediate
rm -rf "$PWD"`, s.bin)
	s.guarded.Stderr = os.Stderr // and who reads that to its end has waited for the removal
	guard, err := s.guarded.StdinPipe()
	if err != nil {
		return err
	}
	s.guard = guard
	return s.guarded.Start()
}

func (s *Server) prepare(more []string) error {
	err := s.run("initdb", "--pgdata=data", "--no-sync", "--auth=trust", "--username="+Superuser, "--encoding=UTF8", "--no-locale")
	if err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(s.folder, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, settings+"%s\n", s.folder, strings.Join(more, "\n"))
	if err = errors.Join(err, conf.Close()); err != nil {
		return err
	}
	return s.up()
}

func (s *Server) close() error {
	return errors.Join(s.guard.Close(), s.guarded.Wait())
}

// Kill stops the server at once, as a crash does: connections break, and
// nothing is written any more.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	require.NoError(t, s.run("pg_ctl", "stop", "--pgdata=data", "--mode=immediate"))
}

// Run starts the server again after a [Server.Kill], and returns when it takes
// connections.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	require.NoError(t, s.up())
}

// Demote makes the server a replica, which takes no writes: one that waits for
// a primary that there is not.
func (s *Server) Demote(t testing.TB) {
	t.Helper()
	require.NoError(t, s.run("pg_ctl", "stop", "--pgdata=data", "--mode=fast"))
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "data", "standby.signal"), nil, 0o644))
	require.NoError(t, s.up())
}

func (s *Server) up() error {
	return s.run("pg_ctl", "start", "--pgdata=data", "--log=log", "--wait", "--timeout=300")
}

// run runs one of the server's programs to its end.
func (s *Server) run(program string, args ...string) error {
	out, err := s.command(filepath.Join(s.bin, program), args...).CombinedOutput()
	if err == nil {
		return nil
	}
	log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return fmt.Errorf("pgtest: %s: %w\n%s%s", program, err, out, log)
}

// command is a program that runs as the server does, in its folder, in a group
// of its own, so that no signal of a terminal's gets there.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.folder
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// Config is that of a pool of the role's connections to its own database, or
// the superuser's. The role has to be one of a plain name.
func (s *Server) Config(t testing.TB, role string) *pgxpool.Config {
	t.Helper()
	config, err := pgxpool.ParseConfig(fmt.Sprintf("host=%s port=5432 dbname=%s user=%s sslmode=disable", s.folder, Superuser, role))
	require.NoError(t, err)
	return config
}

// Pool is a pool of the superuser's connections, which is closed when the test
// ends.
func (s *Server) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, s.Config(t, Superuser))
}

// Open is a pool that is closed when the test ends.
func Open(t testing.TB, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
