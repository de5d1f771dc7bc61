package pgtest

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

var errNotInstalled = errors.New("pgtest: no PostgreSQL server is installed: run scripts/setup, or install the package postgresql " +
	"(Debian, Ubuntu), postgresql-server (Fedora) or postgresql (Homebrew); one elsewhere is found by its pg_config on the PATH")

// packaged is where Debian keeps a folder for each major version.
const packaged = "/usr/lib/postgresql"

// installed returns the folder of the server's programs: that which the
// pg_config on the PATH names, if it has a server, or else the newest of
// Debian's.
func installed() (bin string, err error) {
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		if bin := strings.TrimSpace(string(out)); hasServer(bin) {
			return bin, nil
		}
	}
	return newest(packaged)
}

// newest returns the programs of the highest version that has a folder in root.
func newest(root string) (bin string, err error) {
	bins, err := filepath.Glob(filepath.Join(root, "*", "bin"))
	if err != nil {
		return "", err
	}
	bins = slices.DeleteFunc(bins, func(bin string) bool { return !hasServer(bin) })
	if len(bins) == 0 {
		return "", errNotInstalled
	}
	return slices.MaxFunc(bins, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), nil
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func hasServer(bin string) bool {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if info, err := os.Stat(filepath.Join(bin, program)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// account returns as whom the server runs: as the user of the tests or, since
// it refuses root, as another. Nil is the user of the tests.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			uid, err := strconv.ParseUint(found.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
		}
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor one nobody: run the tests as another user")
}
