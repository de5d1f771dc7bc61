package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startServer starts an installed PostgreSQL on a socket in a temporary folder,
// for this demonstration alone, and returns how to connect, and what stops and
// removes it.
func startServer(ctx context.Context) (database string, stop func(), err error) {
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's; elsewhere they are on the PATH
	slices.Reverse(bins)
	program := func(name string) string {
		for _, bin := range bins {
			if path, err := exec.LookPath(filepath.Join(bin, name)); err == nil {
				return path
			}
		}
		return name
	}
	folder, err := os.MkdirTemp("", "tickonce")
	if err != nil {
		return "", nil, err
	}
	attributes := &syscall.SysProcAttr{Setpgid: true} // ^C is ours
	if os.Geteuid() == 0 {                            // as whom PostgreSQL does not run
		account, err := user.Lookup("postgres")
		if err != nil {
			return "", nil, err
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(folder, uid, gid); err != nil {
			return "", nil, err
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(program(name), args...)
		cmd.Dir, cmd.SysProcAttr = folder, attributes
		return cmd
	}

	data := filepath.Join(folder, "data")
	if out, err := command("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", data).CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("initdb: %w: is PostgreSQL installed? Else name a server by DATABASE_URL\n%s", err, out), os.RemoveAll(folder))
	}
	server := command("postgres", "-D", data, "-k", folder, "-c", "listen_addresses=")
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(folder))
	}
	stop = func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		_ = os.RemoveAll(folder)
	}
	database = "host=" + folder + " user=postgres dbname=postgres sslmode=disable"
	for range 300 {
		conn, err := pgx.Connect(ctx, database)
		if err == nil {
			return database, stop, conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			stop()
			return "", nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	stop()
	return "", nil, errors.New("the server takes no connections")
}
