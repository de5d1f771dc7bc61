package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var rewriteScripts = flag.Bool("rewrite", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(withCache{m}, map[string]func(){"simulate": main})
}

// withCache runs the tests with a cache of their own for the module of --engine,
// which they share.
type withCache struct{ *testing.M }

var testCache string

func (m withCache) Run() int {
	var err error
	if testCache, err = os.MkdirTemp("", "simulate-cache"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(testCache)
	return m.M.Run()
}

// useCache has a script use it, and the go command what it has compiled outside.
func useCache(env *testscript.Env) error {
	outside, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		return err
	}
	values := strings.Fields(string(outside))
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		env.Setenv(name, values[i])
	}
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // as os.UserCacheDir reads them
		env.Setenv(name, testCache)
	}
	return nil
}

// TestScripts runs the command as a user does. What it prints stands in the
// scripts, to be read as a user would.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       *rewriteScripts,
		Setup:               useCache,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"mask":  mask,
			"guest": writeGuest,

			"engine": recordEngine,
			"damage": damage,
		},
	})
}

// exits runs a command that has to end with the code: exits CODE COMMAND ARG…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// writeGuest writes a program for WASI that ends at once, or that traps: guest
// FILE [trap]
func writeGuest(ts *testscript.TestScript, _ bool, args []string) {
	code := "\x0a\x04\x01\x02\x00\x0b"
	if len(args) > 1 {
		code = "\x0a\x05\x01\x03\x00\x00\x0b"
	}
	wasm := "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
		"\x07\x13\x02\x06_start\x00\x00\x06memory\x02\x00" + code
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(wasm), 0o666))
}

// mask writes the standard output without what differs from machine to
// machine, or with every change of the engine, to a file: mask FILE
func mask(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile("stdout")
	for _, m := range []struct{ pattern, by string }{
		{`in [0-9a-z]+: [0-9,]+ seconds per second, [0-9,]+ events`, "in WALL: N seconds per second, N events"},
		{`in [0-9a-z]+: [0-9,]+ runs per second, [0-9,]+ events`, "in WALL: N runs per second, N events"},
		{`and digest, in [0-9a-z]+`, "and digest, in WALL"},
		{`"wasm_digest": "[0-9a-f]{16}"`, `"wasm_digest": "HEX"`},
		{`to compare, [0-9,]+ events`, "to compare, N events"},
		{`(?s)never reached: [a-z, \n-]+?\n\n`, "never reached: MARKS\n\n"},
		{`digest ( *)[0-9a-f]{16}`, "digest ${1}HEX"},
		{`"digest": "[0-9a-f]{16}"`, `"digest": "HEX"`},
		{`"events": [0-9]+`, `"events": N`},
		{`records, [0-9,]+ bytes`, "records, N bytes"},
		{`"bytes": [0-9]+`, `"bytes": N`},
		{`(state|"state_sha256":) ("?)[0-9a-f]{64}`, "${1} ${2}HEX"},
	} {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.by)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}
