// Package guest runs programs compiled to WebAssembly as handlers of package sim:
// any program for WASI preview 1, in whatever language, as GOOS=wasip1 has it.
//
//	program, err := guest.Compile(ctx, "report.wasm", wasm, guest.Limits{})
//	if err != nil {
//		return err
//	}
//	defer program.Close(ctx)
//	scenario.Handlers = sim.Handlers{"report": program.Handle}
//
// # What a program gets
//
// Each attempt of a job is a process of its own: a fresh instance of the module,
// compiled once, which begins at _start and keeps nothing for the next. It has
//
//   - the job's payload on standard input;
//   - what else there is to know of the job in the environment:
//     TICKONCE_JOB, TICKONCE_SCHEDULE, TICKONCE_QUEUE, TICKONCE_BOUNDARY and
//     TICKONCE_DEADLINE (RFC 3339, in UTC), TICKONCE_ATTEMPT (from 1),
//     TICKONCE_MAX_ATTEMPTS, TICKONCE_PRIORITY and TICKONCE_LAST_ERROR;
//   - one argument, the name of its file; no files, and no network.
//
// The wall clock is the one of its process, as [sim.Call.Now] has it; the
// monotonic one goes by the true time. Both stand still while the program
// computes. A sleep, which is a poll_oneoff, lets the simulated time pass, and
// everything else that happens in it. Randomness follows from the run's seed, the
// job and the attempt. So a program does the same for the same seed, goroutines,
// map order and all, on every machine. (What is left open by WebAssembly itself is
// the bits of a NaN.)
//
// With the exit code 0 the job is done. Any other is an error, which is tried
// again; the text of it has what the program printed, standard error before
// standard output. A panic of a Go program is such an exit, with code 2. A trap,
// such as an access out of bounds, is a crash ([sim.ErrCrash]). When a process of
// the simulation stops, crashes or loses the claim, the instance is gone, in the
// middle of a sleep, and nothing of it is run any more.
//
// # What it may take
//
// [Limits] bounds memory, and calls between two sleeps; exceeding it is the verdict
// budget. WebAssembly has no count of instructions, so a program that computes for
// ever is stopped by a clock of the host, alone of all that this package does: a
// run that comes to that, which says so, might not on a faster machine.
//
// # The order of goroutines
//
// A Go program has one thread under wasip1, and nothing takes it from a goroutine
// that does not wait. What its runtime leaves to chance, it draws from the
// randomness that it is given: which case of a select is taken, in which order a
// map is ranged over, and what math/rand and crypto/rand answer. So another seed of
// the run is another choice, and the same seed is the same one: a sweep explores
// these orders, with the toolchain as it is.
//
// The rest is no matter of chance there, so no seed changes it: in which order
// goroutines begin, and in which those wake that sleep until the same instant. What
// only a preemption in the middle of a computation or two threads at once could
// bring about is not explored at all: data races stay what go test -race is for. To
// have a program's steps come in another order, let it sleep for random times. Other
// languages bring their own scheduler, or none.
package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/tickonce/tickonce/sim"
)

// Limits bound what one instance may take. A zero field has its default.
type Limits struct {
	Memory  int           // bytes, in whole pages of 64 KiB, rounded down; default 256 MiB, at most 4 GiB
	Calls   int           // of the system, between two sleeps; default 1,000,000
	Compute time.Duration // of the host's time, between two sleeps; default 10 s
}

func (l Limits) withDefaults() Limits {
	if l.Memory <= 0 {
		l.Memory = 256 << 20
	}
	if l.Calls <= 0 {
		l.Calls = 1_000_000
	}
	if l.Compute <= 0 {
		l.Compute = 10 * time.Second
	}
	return l
}

// Program is a compiled module. It is safe for concurrent use: several runs may
// have the same.
type Program struct {
	name    string
	limits  Limits
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// Compile compiles a module. Its name, that of its file say, is for messages; its
// last element is its argument. The error says what the bytes are, and what is
// expected.
func Compile(ctx context.Context, name string, wasm []byte, limits Limits) (*Program, error) {
	return compile(ctx, name, wasm, limits, wazero.NewRuntimeConfig())
}

func compile(ctx context.Context, name string, wasm []byte, limits Limits, config wazero.RuntimeConfig) (_ *Program, err error) {
	if err := checkHeader(wasm); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Program{name: name, limits: limits.withDefaults()}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, config.WithCloseOnContextDone(true))
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", name, err), p.runtime.Close(ctx))
		}
	}()
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	if p.module, err = p.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, fmt.Errorf("found a WebAssembly module that is not valid: %w", err)
	}
	if err = p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close frees the module. No run may have it any more.
func (p *Program) Close(ctx context.Context) error { return p.runtime.Close(ctx) }

// Handle runs the program for a job. It is a [sim.Steps].
func (p *Program) Handle(call *sim.Call) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	i := &instance{call: call, limits: p.limits, cancel: cancel}
	i.stdout.instance, i.stderr.instance = i, i
	i.watchdog = time.AfterFunc(p.limits.Compute, i.timeOut)
	defer i.watchdog.Stop()
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(i.allocate))
	module, err := p.runtime.InstantiateModule(ctx, p.module, i.config(filepath.Base(p.name)))
	if module != nil {
		err = errors.Join(err, module.Close(ctx))
	}
	return i.judge(err)
}

// instance is one that runs.
type instance struct {
	call     *sim.Call
	limits   Limits
	cancel   context.CancelFunc
	watchdog *time.Timer
	timedOut atomic.Bool

	calls          int // since the last sleep
	busy           bool
	full           bool // it asked for more memory than it may have
	stdout, stderr output
}

// What ends an instance.
var (
	errBusy = errors.New("too many calls without a sleep")
	errFull = errors.New("too much memory")
)

func (i *instance) config(name string) wazero.ModuleConfig {
	job := &i.call.Job
	config := wazero.NewModuleConfig().WithName("").WithArgs(name).
		WithStdin(bytes.NewReader(job.Payload)).WithStdout(&i.stdout).WithStderr(&i.stderr).
		WithWalltime(i.walltime, sys.ClockResolution(time.Millisecond)).
		WithNanotime(i.nanotime, sys.ClockResolution(time.Millisecond)).
		WithNanosleep(i.sleep).WithOsyield(func() { i.sleep(0) }).
		WithRandSource(random{i.call.Rand(), i})
	for _, v := range [][2]string{
		{"JOB", strconv.FormatInt(int64(job.ID), 10)},
		{"SCHEDULE", job.Schedule},
		{"QUEUE", job.Queue},
		{"BOUNDARY", job.Boundary.Format(time.RFC3339Nano)},
		{"DEADLINE", job.Deadline.Format(time.RFC3339Nano)},
		{"ATTEMPT", strconv.Itoa(job.Attempt)},
		{"MAX_ATTEMPTS", strconv.Itoa(job.MaxAttempts)},
		{"PRIORITY", strconv.Itoa(int(job.Priority))},
		{"LAST_ERROR", job.LastError},
	} {
		config = config.WithEnv("TICKONCE_"+v[0], v[1])
	}
	return config
}

// judge is how the job ends.
func (i *instance) judge(err error) error {
	exit := (*sys.ExitError)(nil)
	exited := errors.As(err, &exit)
	switch {
	case err == nil || exited && exit.ExitCode() == 0:
		return nil
	case i.timedOut.Load():
		return i.spent("it computed for %v of the host's time without a sleep", i.limits.Compute)
	case i.busy:
		return i.spent("it made more than %d calls of the system without a sleep", i.limits.Calls)
	case i.full:
		return i.spent("it asked for more than %d MiB of memory", i.limits.Memory>>20)
	case exited:
		return errors.New(i.printed(fmt.Sprintf("exit code %d", exit.ExitCode())))
	default:
		return fmt.Errorf("%w: %s", sim.ErrCrash, i.printed(strings.TrimPrefix(err.Error(), "module[] function[_start] failed: ")))
	}
}

func (i *instance) spent(format string, limit any) error {
	return fmt.Errorf("%w: %s", sim.ErrBudget, i.printed(fmt.Sprintf(format, limit)))
}

// printed is the text with what the program printed behind it.
func (i *instance) printed(text string) string {
	for _, o := range []*output{&i.stderr, &i.stdout} {
		if s := o.String(); s != "" {
			text += ": " + s
		}
	}
	return text
}

// timeOut ends the instance while it computes. It is called by another goroutine.
func (i *instance) timeOut() {
	i.timedOut.Store(true)
	i.cancel()
}

// count counts a call of the system.
func (i *instance) count() {
	if i.calls++; i.calls > i.limits.Calls {
		i.busy = true
		panic(errBusy)
	}
}

func (i *instance) walltime() (int64, int32) {
	i.count()
	now := i.call.Now()
	return now.Unix(), int32(now.Nanosecond())
}

// nanotime is not 0, which a Go program takes for a broken clock.
func (i *instance) nanotime() int64 {
	i.count()
	return int64(i.call.Elapsed()) + 1
}

// sleep gives the run to others. If the handler is given up meanwhile, it panics,
// which ends the instance.
func (i *instance) sleep(ns int64) {
	i.watchdog.Stop()
	i.call.Sleep(time.Duration(ns))
	i.calls = 0
	i.watchdog.Reset(i.limits.Compute)
}

// random is the bytes of a source of randomness.
type random struct {
	*rand.Rand
	instance *instance
}

func (r random) Read(p []byte) (int, error) {
	r.instance.count()
	for n := 0; n < len(p); n += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(p[n:], word[:])
	}
	return len(p), nil
}

// allocate is the memory of the instance.
func (i *instance) allocate(_, _ uint64) experimental.LinearMemory { return &memory{instance: i} }

type memory struct {
	instance *instance
	bytes    []byte
}

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(m.instance.limits.Memory) {
		m.instance.full = true
		panic(errFull) // a program that is refused may take for ever to say so
	}
	if size > uint64(cap(m.bytes)) {
		grown := make([]byte, size, max(size, min(2*uint64(cap(m.bytes)), uint64(m.instance.limits.Memory))))
		copy(grown, m.bytes)
		m.bytes = grown
	}
	m.bytes = m.bytes[:size]
	return m.bytes
}

func (m *memory) Free() { m.bytes = nil }
