//go:build !wasm

package tickonce_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests hold the rules of docs/ARCHITECTURE.md that the compiler cannot:
// which room may import which, what the deterministic rooms must not do, what
// the engine must not drag into a WebAssembly build. Each checker is also run
// on planted input that it has to refuse.

// platforms are GOOS/GOARCH pairs; the empty one is the host's.
var platforms = []string{"", "js/wasm", "wasip1/wasm"}

const module = "github.com/tickonce/tickonce"

// A room is a package, or with a path that ends in "/..." all packages below
// a folder, and what it may import beside the standard library. Package
// testing counts as one more thing to be allowed. Tests may import anything.
type room struct {
	path string
	may  []string
}

var rooms = []room{
	{"store", nil},
	{"internal/core", []string{"store"}},
	{".", []string{"internal/core", "store"}},
	{"storetest", []string{"store", "testing", "github.com/stretchr/testify/..."}},
	{"internal/faultstore", []string{"store"}},
	{"eventlog", []string{"."}},
	{"memengine", []string{".", "store", "github.com/tidwall/btree"}},
	{"fileengine", []string{".", "memengine", "github.com/gofrs/flock"}},
	{"sim", []string{".", "memengine", "store", "internal/..."}},
	{"sim/htmlreport", []string{".", "sim"}},
	{"sim/guest", []string{"sim", "github.com/tetratelabs/wazero/..."}},
	{"cmd/simulate", []string{
		"sim", "sim/htmlreport", "sim/guest", "fileengine", "memengine",
		"github.com/gofrs/flock", "github.com/spf13/cobra", "github.com/jedib0t/go-pretty/v6/...", "github.com/tetratelabs/wazero/...", "golang.org/x/term",
	}},
	{"wasm/wire", []string{".", "memengine", "store", "github.com/go-json-experiment/json/jsontext"}},
	{"wasm/guest", []string{"wasm/wire"}},
	{"wasm/gojs", []string{".", "memengine", "wasm/wire"}},
	{"wasm/host", []string{"wasm/wire", ".", "memengine", "github.com/tetratelabs/wazero/..."}},
	{"wasm/simulator", []string{"sim"}},
	{"wasm/conversation", []string{"wasm/wire", "testing", "github.com/stretchr/testify/..."}},
	{"mutants", []string{"github.com/spf13/cobra", "github.com/jedib0t/go-pretty/v6/..."}},
	{"properties", []string{".", "eventlog", "memengine", "sim", "store", "storetest", "testing", "pgregory.net/rapid"}},
	{"examples/...", []string{".", "eventlog", "examples/board", "fileengine", "memengine", "sim", "sim/guest", "store", "wasm/gojs", "wasm/host", "github.com/benbjohnson/clock"}},
}

// light names the rooms that every WebAssembly build of the engine links, and
// heavy what would cost it 100 kB and more, or has no place outside tests.
var (
	light = []string{"store", "internal/core", ".", "memengine", "wasm/wire"}
	heavy = []string{
		"crypto/rand", "encoding/binary", "encoding/gob", "encoding/json", "fmt", "log", "log/slog", "net",
		"os/exec", "reflect", "regexp", "testing", "text/template", "github.com/benbjohnson/clock",
	}
)

const maxLines = 700

func TestLayeringImports(t *testing.T) {
	for _, platform := range platforms {
		require.Empty(t, strayImports(goList(t, platform, "./...")))
	}

	planted := func(path string, imports ...string) []listed {
		return []listed{{ImportPath: module + path, Imports: imports}}
	}
	for name, pkgs := range map[string][]listed{
		"against the direction":   planted("/store", module+"/internal/core"),
		"the root from below":     planted("/internal/core", module),
		"a foreign module":        planted("/memengine", "github.com/benbjohnson/clock"),
		"testing in the product":  planted("/internal/faultstore", "testing"),
		"internals in an example": planted("/examples/embed", module+"/internal/core"),
		"a room not in the table": planted("/util"),
	} {
		require.Len(t, strayImports(pkgs), 1, name)
	}
	require.Empty(t, strayImports(planted("", "time", module+"/store", module+"/internal/core")))
}

// strayImports returns the imports that the table of rooms does not allow, and
// the packages that are in none of its rows.
func strayImports(pkgs []listed) (stray []string) {
	for _, pkg := range pkgs {
		at := slices.IndexFunc(rooms, func(r room) bool { return within(pkg.rel(), r.path) })
		if at < 0 {
			stray = append(stray, pkg.rel()+" is in no row of the table of rooms")
			continue
		}
		for _, path := range pkg.Imports {
			rel := (listed{ImportPath: path}).rel()
			first, _, _ := strings.Cut(rel, "/")
			standard := rel == path && !strings.Contains(first, ".") && path != "testing"
			if !standard && !slices.ContainsFunc(rooms[at].may, func(may string) bool { return within(rel, may) }) {
				stray = append(stray, pkg.rel()+" imports "+rel)
			}
		}
	}
	return stray
}

// within reports whether path is the pattern or, if that ends in "/...", the
// folder or something below it.
func within(path, pattern string) bool {
	folder, below := strings.CutSuffix(pattern, "/...")
	return path == folder || below && strings.HasPrefix(path, folder+"/")
}

func TestLayeringClosure(t *testing.T) {
	for _, platform := range platforms {
		for _, path := range present(t, light) {
			require.Empty(t, weight(goList(t, platform, "-deps", path)), "%s on %q", path, platform)
		}
		require.Contains(t, weight(goList(t, platform, "-deps", "log/slog")), "fmt")
	}
}

// weight returns those of the packages that are too heavy for the engine.
func weight(closure []listed) (found []string) {
	for _, pkg := range closure {
		if slices.Contains(heavy, pkg.ImportPath) {
			found = append(found, pkg.ImportPath)
		}
	}
	return found
}

func TestLayeringFileLength(t *testing.T) {
	for _, pkg := range goList(t, "", "./...") {
		for _, name := range slices.Concat(pkg.GoFiles, pkg.IgnoredGoFiles) {
			text, err := os.ReadFile(filepath.Join(pkg.Dir, name))
			require.NoError(t, err)
			require.LessOrEqual(t, lines(text), maxLines, "%s/%s", pkg.rel(), name)
		}
	}
	require.Equal(t, maxLines+1, lines(bytes.Repeat([]byte("\n"), maxLines+1)))
}

func lines(text []byte) int { return bytes.Count(text, []byte("\n")) }

// TestLayeringPlaces keeps the repository free of the places where it was
// made: it has to build in any folder and behind any mirror.
func TestLayeringPlaces(t *testing.T) {
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("not a git checkout: the tracked files are not known")
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(run(t, "", "git", "ls-files", "-z"), "\x00"), "\x00") {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || bytes.ContainsRune(text, 0) {
			continue // deleted but not committed, or no text
		}
		require.NoError(t, err)
		require.Empty(t, places(string(text)), name)
	}

	slash := "/"
	for _, text := range []string{
		slash + "home/someone/tickonce", `"` + slash + `Users/someone"`, "file:" + slash + slash + slash + "root/x",
		"a=" + slash + "tmp/main", "https:" + slash + slash + strings.Join(registries[0], "."),
	} {
		require.Len(t, places(text), 1, text)
	}
	require.Empty(t, places("internal/tmp/main.go and https://go.dev/tmp/"))
}

var registries = [][]string{
	{"proxy", "golang", "org"}, {"sum", "golang", "org"}, {"registry", "npmjs", "org"}, {"deb", "debian", "org"}, {"pypi", "org"},
}

// places returns the absolute local paths and the hosts of package registries
// in the text.
func places(text string) (found []string) {
	found = regexp.MustCompile(`(?:^|[^\w.)*-])/(?:home|root|tmp|Users)/\w+`).FindAllString(text, -1)
	if here, err := os.Getwd(); err == nil && strings.Contains(text, here) {
		found = append(found, here)
	}
	for _, labels := range registries {
		if host := strings.Join(labels, "."); strings.Contains(text, host) {
			found = append(found, host)
		}
	}
	return found
}

// listed is what go list says of a package.
type listed struct {
	ImportPath     string
	Dir            string
	GoFiles        []string
	IgnoredGoFiles []string
	Imports        []string
	Export         string
	DepOnly        bool
}

// rel returns the path from the module's root, or the import path of a package
// of another module.
func (p listed) rel() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// present returns the import paths of those rooms that exist.
func present(t *testing.T, paths []string) (found []string) {
	for _, pkg := range goList(t, "", "./...") {
		if slices.Contains(paths, pkg.rel()) && len(pkg.GoFiles) > 0 {
			found = append(found, pkg.ImportPath)
		}
	}
	return found
}

func goList(t *testing.T, platform string, args ...string) (pkgs []listed) {
	dec := json.NewDecoder(strings.NewReader(run(t, platform, "go", append([]string{
		"list", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,Imports,Export,DepOnly",
	}, args...)...)))
	for {
		var pkg listed
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return pkgs
		} else {
			require.NoError(t, err)
		}
		pkgs = append(pkgs, pkg)
	}
}

// run returns what the command prints in the module's root.
func run(t *testing.T, platform, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	if goos, goarch, cross := strings.Cut(platform, "/"); cross {
		cmd.Env = append(cmd.Environ(), "GOOS="+goos, "GOARCH="+goarch)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, fmt.Sprint(name, " ", args, ": ", stderr.String()))
	return string(out)
}
