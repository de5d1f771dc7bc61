//go:build !wasm

package tickonce_test

import (
	"cmp"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deterministic names the rooms whose every answer follows from their input.
var deterministic = []string{"store", "internal/core", ".", "internal/faultstore", "memengine", "sim"}

// The bans of the deterministic rooms.
const (
	wallClock = "wall clock"
	random    = "unkeyed randomness"
	goroutine = "goroutine"
	mapOrder  = "map order"
	float     = "floating point"
)

// An exemption allows what a ban forbids in one place, a file or
// file:function.
type exemption struct{ place, ban, why string }

var exempt = []exemption{
	{"host.go", wallClock, "the default of Config.Clock"},
	{"host.go", random, "the defaults of Config.Seed and Config.Owner"},
	{"loop.go", wallClock, "the deadlines of a worker's calls and of the release at the end"},
	{"loop.go", goroutine, "the handlers of a worker"},
}

func TestBans(t *testing.T) {
	used := make([]bool, len(exempt))
	seen := map[finding]bool{} // on an earlier platform
	for _, platform := range platforms {
		load := newLoader(t, platform, present(t, deterministic)...)
		for _, pkg := range load.pkgs {
			for _, f := range load.check(t, pkg) {
				if seen[f] {
					continue
				}
				seen[f] = true
				at := slices.IndexFunc(exempt, func(e exemption) bool {
					return e.ban == f.ban && (e.place == f.file || e.place == f.file+":"+f.function)
				})
				if at < 0 {
					t.Errorf("%s:%d: %s in %s: %s", f.file, f.line, f.ban, cmp.Or(f.function, "a declaration"), f.what)
					continue
				}
				used[at] = true
			}
		}
	}
	for i, e := range exempt {
		if !used[i] {
			t.Errorf("%s has no %s any more: take it from the list", e.place, e.ban)
		}
	}
}

func TestBansHaveTeeth(t *testing.T) {
	load := newLoader(t, "", "context", "crypto/rand", "hash/maphash", "maps", "math/rand", "math/rand/v2", "slices", "sync", "time")
	for _, c := range []struct {
		name, body string
		bans       []string
	}{
		{"call", `_ = time.Now()`, []string{wallClock}},
		{"value", `now := time.Now; _ = now`, []string{wallClock}},
		{"hidden now", `_ = time.Since(time.Time{})`, []string{wallClock}},
		{"timer", `<-time.After(1)`, []string{wallClock}},
		{"deadline", `_, _ = context.WithTimeout(nil, 1)`, []string{wallClock}},
		{"time as an argument", `_ = time.UnixMilli(1).Add(time.Hour)`, nil},
		{"global source", `_ = randv2.IntN(6)`, []string{random}},
		{"global source of the old package", `_ = rand.Int()`, []string{random}},
		{"source of its own", `_ = randv2.New(randv2.NewPCG(1, 2)).IntN(6)`, nil},
		{"platform's source", `_, _ = crand.Read(nil)`, []string{random}},
		{"seeded hash", `_ = maphash.MakeSeed()`, []string{random}},
		{"go statement", `go func() {}()`, []string{goroutine}},
		{"wait group", `new(sync.WaitGroup).Go(func() {})`, []string{goroutine}},
		{"range over a map", `for range named(nil) {}`, []string{mapOrder}},
		{"range over a type parameter", `over(named(nil))`, nil},
		{"range over its keys", `for range maps.Keys(named(nil)) {}`, []string{mapOrder}},
		{"range over sorted keys", `for range slices.Sorted(maps.Keys(named(nil))) {}`, nil},
		{"sorted keys, from what is banned", `slices.Sorted(maps.Keys(map[string]time.Time{"": time.Now()}))`, []string{wallClock}},
		{"range over a slice", `for range []int{} {}`, nil},
		{"sync map", `new(sync.Map).Range(nil)`, []string{mapOrder}},
		{"float variable", `x := 1.5; _ = x`, []string{float}},
		{"float from elsewhere", `_ = int(time.Second.Seconds())`, []string{float}},
		{"float parameter", `_ = func(float32) {}`, []string{float}},
		{"complex", `_ = real(1i)`, []string{float}},
		{"exact constant", `const ms = 1e3; _ = int64(ms)`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var bans []string
			for _, f := range load.checkSource(t, "planted.go", planted(c.body)) {
				if f.function == "body" && !slices.Contains(bans, f.ban) {
					bans = append(bans, f.ban)
				}
			}
			require.Equal(t, c.bans, bans)
		})
	}
	all := load.checkSource(t, "planted.go", planted(""))
	require.Len(t, all, 1)
	require.Equal(t, finding{"planted.go", all[0].line, "over", mapOrder, "range over M"}, all[0])
}

// planted is a source file with the given function body.
func planted(body string) string {
	return `package planted

import (
	"context"
	crand "crypto/rand"
	"hash/maphash"
	"maps"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
	"sync"
	"time"
)

var (
	_ context.Context
	_ = crand.Reader
	_ maphash.Hash
	_ rand.Rand
	_ randv2.Rand
	_ sync.Mutex
	_ time.Time
	_ = maps.Clone[named]
	_ = slices.Max[[]string]
)

type named map[string]int

func over[M ~map[K]V, K comparable, V any](m M) {
	for range m {
	}
}

func body() {
	` + body + `
}
`
}

// A finding is one breach of a ban.
type finding struct {
	file     string // slash-separated, from the module's root
	line     int
	function string // Name or Type.Name; empty outside functions
	ban      string
	what     string
}

// A loader type-checks packages of one platform from source, with their
// imports read from the compiler's export data.
type loader struct {
	fset    *token.FileSet
	pkgs    []listed // without their imports
	imports types.Importer
}

func newLoader(t *testing.T, platform string, paths ...string) *loader {
	l := &loader{fset: token.NewFileSet()}
	export := map[string]string{}
	if len(paths) > 0 {
		for _, pkg := range goList(t, platform, append([]string{"-export", "-deps"}, paths...)...) {
			export[pkg.ImportPath] = pkg.Export
			if !pkg.DepOnly {
				l.pkgs = append(l.pkgs, pkg)
			}
		}
	}
	l.imports = importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path])
	})
	return l
}

func (l *loader) check(t *testing.T, pkg listed) []finding {
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		text, err := os.ReadFile(filepath.Join(pkg.Dir, name))
		require.NoError(t, err)
		files = append(files, l.parse(t, filepath.ToSlash(filepath.Join(pkg.rel(), name)), string(text)))
	}
	return l.breaches(t, pkg.ImportPath, files)
}

func (l *loader) checkSource(t *testing.T, name, text string) []finding {
	return l.breaches(t, "planted", []*ast.File{l.parse(t, name, text)})
}

func (l *loader) parse(t *testing.T, name, text string) *ast.File {
	file, err := parser.ParseFile(l.fset, name, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}

// breaches returns what the files of one package do against the bans, one
// finding for each line and ban.
func (l *loader) breaches(t *testing.T, path string, files []*ast.File) (found []finding) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: l.imports}).Check(path, l.fset, files, info)
	require.NoError(t, err)

	var sorted ast.Node // the last iterator whose order slices.Sorted sets right
	for _, file := range files {
		for _, decl := range file.Decls {
			function := functionName(decl)
			ast.Inspect(decl, func(n ast.Node) bool {
				if n == nil {
					return false
				}
				if called(info, n, "slices.Sorted") != nil {
					sorted = called(info, n.(*ast.CallExpr).Args[0], "maps.Keys", "maps.Values")
				}
				if ban, what := breach(info, n); ban != "" && n != sorted {
					at := l.fset.Position(n.Pos())
					if last := len(found) - 1; last < 0 || found[last].line != at.Line || found[last].ban != ban {
						found = append(found, finding{at.Filename, at.Line, function, ban, what})
					}
				}
				return true
			})
		}
	}
	return found
}

// breach returns the ban that the node itself breaks.
func breach(info *types.Info, n ast.Node) (ban, what string) {
	switch n := n.(type) {
	case *ast.GoStmt:
		return goroutine, "go statement"
	case *ast.RangeStmt:
		if over := info.TypeOf(n.X); isMap(over) {
			return mapOrder, "range over " + over.String()
		}
	case *ast.Ident:
		if f, ok := info.Uses[n].(*types.Func); ok && f.Pkg() != nil {
			if ban := banOf(f); ban != "" {
				return ban, f.FullName()
			}
		}
	}
	if e, ok := n.(ast.Expr); ok {
		kind := info.TypeOf(e)
		if kind == nil {
			return "", ""
		}
		if b, ok := kind.Underlying().(*types.Basic); ok && b.Info()&(types.IsFloat|types.IsComplex) != 0 && b.Info()&types.IsUntyped == 0 {
			return float, types.ExprString(e)
		}
	}
	return "", ""
}

// TestBansOfWhatIsNotRaced: the packages that make race leaves out start no
// goroutine, their tests neither; of cmd/simulate it leaves out all but sweeps,
// since nothing else starts any.
func TestBansOfWhatIsNotRaced(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	serial := regexp.MustCompile(`(?m)^SERIAL +:= (.+)$`).FindSubmatch(makefile)
	require.NotNil(t, serial)
	for folder := range strings.FieldsSeq(string(serial[1])) {
		require.Empty(t, concurrent(t, folder), folder)
	}
	require.Equal(t, []string{"bar.go", "sweep.go"}, concurrent(t, "cmd/simulate"))
	require.Contains(t, concurrent(t, "."), "loop.go")
	require.Contains(t, concurrent(t, "examples/scenarios"), "scenarios_test.go")
}

// concurrent returns the files of a folder that start goroutines.
func concurrent(t *testing.T, folder string) (files []string) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, folder)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		starts := false
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts = true
			case *ast.SelectorExpr:
				starts = starts || slices.Contains([]string{"Go", "AfterFunc", "Parallel", "RunSchedules", "RunWorker"}, n.Sel.Name)
			}
			return true
		})
		if starts {
			files = append(files, filepath.Base(path))
		}
	}
	return files
}

// banned functions of the standard library by their full name. Beside them
// the whole of crypto/rand and hash/maphash, and what math/rand and
// math/rand/v2 draw from their global source.
var banned = map[string][]string{
	wallClock: {
		"time.Now", "time.Since", "time.Until", "time.Sleep",
		"time.After", "time.AfterFunc", "time.NewTicker", "time.NewTimer", "time.Tick",
		"context.WithDeadline", "context.WithDeadlineCause", "context.WithTimeout", "context.WithTimeoutCause",
	},
	goroutine: {"(*sync.WaitGroup).Go", "context.AfterFunc"},
	mapOrder:  {"maps.All", "maps.DeleteFunc", "maps.Keys", "maps.Values", "(*sync.Map).Range"},
}

func banOf(f *types.Func) string {
	switch f.Pkg().Path() {
	case "crypto/rand", "hash/maphash":
		return random
	case "math/rand", "math/rand/v2":
		if f.Signature().Recv() == nil && !strings.HasPrefix(f.Name(), "New") {
			return random
		}
	}
	for _, ban := range []string{wallClock, goroutine, mapOrder} {
		if slices.Contains(banned[ban], f.FullName()) {
			return ban
		}
	}
	return ""
}

// isMap reports whether t is a map or a type parameter that may be one.
func isMap(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface:
		return slices.ContainsFunc(slices.Collect(u.EmbeddedTypes()), isMap)
	case *types.Union:
		return slices.ContainsFunc(slices.Collect(u.Terms()), func(term *types.Term) bool { return isMap(term.Type()) })
	default:
		return false
	}
}

// called returns the name in n if that is a call of one of the functions.
func called(info *types.Info, n ast.Node, functions ...string) ast.Node {
	if call, ok := n.(*ast.CallExpr); ok {
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if f, ok := info.Uses[sel.Sel].(*types.Func); ok && slices.Contains(functions, f.FullName()) {
				return sel.Sel
			}
		}
	}
	return nil
}

func functionName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	return types.ExprString(of) + "." + f.Name.Name
}
