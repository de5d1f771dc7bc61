// Command wazero runs the engine as a WebAssembly module within it: a report
// every second, until it is interrupted. Its state is in a file, and the compiled
// code of the module in a folder, so that the next start is quick.
//
//	wazero MODULE [DIRECTORY]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/wasm/host"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: wazero MODULE [DIRECTORY]")
	}
	dir := "state"
	if len(os.Args) > 2 {
		dir = os.Args[2]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], dir, tickonce.Config{}, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run opens the engine, works until ctx ends, and keeps the state.
func run(ctx context.Context, file, dir string, config tickonce.Config, out io.Writer) (err error) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	module, err := host.Compile(ctx, wasm, host.Options{
		CacheDir: filepath.Join(dir, "code"),
		Memory:   64 << 20, // more than this it does not get
	})
	if err != nil {
		return err
	}
	defer module.Close(context.WithoutCancel(ctx))

	state := filepath.Join(dir, "snapshot")
	snapshot, err := os.ReadFile(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	eng, _, err := module.Open(ctx, host.Config{Config: config, Snapshot: snapshot})
	if err != nil {
		return err
	}
	defer eng.Close()

	// Of what was missed while nothing ran, the last one is enough.
	if _, err := eng.Schedule(ctx, "report", "@every 1s", "reports", nil, tickonce.ScheduleOptions{
		Anchor: time.Unix(0, 0), CatchUp: tickonce.CatchUpLatest,
	}); err != nil {
		return err
	}
	work := func(_ context.Context, job *host.Job) error {
		_, err := fmt.Fprintln(out, "report of", job.Boundary.UTC().Format(time.TimeOnly))
		return err
	}
	if err := both(
		func() error { return eng.RunSchedules(ctx) },
		func() error { return eng.RunWorker(ctx, "reports", work, tickonce.WorkerConfig{}) },
	); err != nil {
		return err
	}

	// What a crash forgets is done again. To forget nothing, keep a journal: see
	// the package comment of wasm/host.
	if snapshot, err = eng.Snapshot(); err != nil {
		return err
	}
	return os.WriteFile(state, snapshot, 0o666)
}

// both calls the two at once, and answers what they return.
func both(one, other func() error) error {
	var wait sync.WaitGroup
	var errs [2]error
	wait.Go(func() { errs[0] = one() })
	wait.Go(func() { errs[1] = other() })
	wait.Wait()
	return errors.Join(errs[:]...)
}
