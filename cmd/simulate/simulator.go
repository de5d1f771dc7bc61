package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tickonce/tickonce/sim"
)

// simulator is the program wasm/simulator as a WebAssembly module. It may run
// several scenarios at once.
type simulator struct {
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	module  wazero.CompiledModule
}

// simulatorMemory is what a run may take, in bytes. From three quarters of it on
// the collector works as often as it has to, as in this program.
const simulatorMemory = 1 << 30

const pageSize = 64 << 10

// openSimulator compiles the module in the file; without one, that of the sources
// from which this program was built. What was compiled is kept for the next time.
func openSimulator(ctx context.Context, file string) (*simulator, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("there is no folder to keep what is compiled: %w", err)
	}
	from, get := file, func(string) ([]byte, error) { return os.ReadFile(file) }
	if file == "" {
		if from, err = simulatorSources(); err != nil {
			return nil, err
		}
		get = func(folder string) ([]byte, error) { return buildSimulator(ctx, from, folder) }
	}
	if from, err = filepath.Abs(from); err != nil {
		return nil, err
	}
	folder := filepath.Join(caches, "tickonce", "simulator", hashOf([]byte(from)))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(folder, "lock")) // against others that build it at once
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	defer lock.Unlock()
	wasm, err := get(folder)
	if err != nil {
		return nil, err
	}
	compiled := filepath.Join(folder, "compiled-"+hashOf(wasm))
	if err := keepOnly(folder, "compiled-*", compiled); err != nil {
		return nil, err
	}
	s, err := compileSimulator(ctx, wasm, compiled, simulatorMemory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return s, nil
}

// hashOf names what is kept of the bytes.
func hashOf(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:16])
}

// keepOnly removes what in the folder has a name like the pattern's, but for one.
func keepOnly(folder, pattern, one string) error {
	old, err := filepath.Glob(filepath.Join(folder, pattern))
	for _, path := range old {
		if path != one {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

const buildByHand = "build the module where the sources are, by GOOS=wasip1 GOARCH=wasm go build -o simulator.wasm ./wasm/simulator, " +
	"and give it as --engine wasm=simulator.wasm"

// simulatorSources is the folder of the module's program, beside the sources of
// this one.
func simulatorSources() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	return sourcesBeside(here)
}

func sourcesBeside(file string) (string, error) {
	folder := filepath.Join(filepath.Dir(file), "..", "..", "wasm", "simulator")
	if _, err := os.Stat(folder); err != nil || !filepath.IsAbs(folder) { // which it is not after go build -trimpath
		return "", fmt.Errorf("the sources from which this program was built are not at hand, found no folder %s: %s", folder, buildByHand)
	}
	return folder, nil
}

// buildSimulator builds the module, if it is not the one that the folder has.
func buildSimulator(ctx context.Context, sources, folder string) ([]byte, error) {
	file := filepath.Join(folder, "simulator.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, ".")
	build.Dir = sources
	build.Env = append(build.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	switch out, err := build.CombinedOutput(); {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("found no go command, want one to build the simulator for WebAssembly: install Go, or %s", buildByHand)
	case err != nil:
		return nil, fmt.Errorf("go build in %s: %w: %s", sources, err, bytes.TrimSpace(out))
	}
	return os.ReadFile(file)
}

// compileSimulator compiles the module, and keeps what comes of it in the folder. A
// run may take so many bytes of memory, in whole pages.
func compileSimulator(ctx context.Context, wasm []byte, folder string, memory uint32) (_ *simulator, err error) {
	s := &simulator{}
	if s.cache, err = wazero.NewCompilationCacheWithDir(folder); err != nil {
		return nil, err
	}
	s.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(s.cache).WithMemoryLimitPages(memory/pageSize))
	defer func() {
		if err != nil {
			s.close(ctx)
		}
	}()
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err != nil {
		return nil, err
	}
	if s.module, err = s.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, fmt.Errorf("found no WebAssembly module that can run, want the simulator: %w", err)
	}
	return s, nil
}

// close frees the module. Nothing may run any more.
func (s *simulator) close(ctx context.Context) {
	if s != nil {
		_ = s.runtime.Close(ctx)
		_ = s.cache.Close(ctx)
	}
}

// digestWord begins the last line of what the module answers.
const digestWord = "digest   "

// ask has a fresh instance of the module run the scenario, or sweep it with the seeds
// that are its argument. The answer is an outcome, or the last line of one.
func (s *simulator) ask(ctx context.Context, scenario *sim.Scenario, args ...string) (string, error) {
	var answer, said bytes.Buffer
	instance, err := s.runtime.InstantiateModule(ctx, s.module, wazero.NewModuleConfig().WithName("").
		WithArgs(append([]string{"simulator"}, args...)...).
		WithEnv("GOGC", "400").WithEnv("GOMEMLIMIT", strconv.Itoa(simulatorMemory*3/4)).
		WithStdin(strings.NewReader(textOf(*scenario))).WithStdout(&answer).WithStderr(&said).
		WithSysNanotime().WithSysWalltime())
	if instance != nil {
		err = errors.Join(err, instance.Close(ctx))
	}
	var exit *sys.ExitError
	switch text := answer.String(); {
	case errors.As(err, &exit):
		first, _ := said.ReadString('\n')
		return "", fmt.Errorf("the simulator compiled to WebAssembly ended with exit code %d: %s", exit.ExitCode(), strings.TrimSpace(first))
	case err != nil:
		return "", fmt.Errorf("the simulator compiled to WebAssembly: %w", err)
	case !strings.HasPrefix(text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:], digestWord):
		return "", fmt.Errorf("found a module that answers %q, want the simulator, which answers an outcome: %s", snip(printable(text), mostReason), buildByHand)
	default:
		return text, nil
	}
}
