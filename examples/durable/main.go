// Command durable keeps its schedules and jobs in a directory. Each run does
// what has become due since the last one and ends, as under a timer of the
// system; nothing is done twice, and nothing is forgotten.
//
//	durable [DIRECTORY]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/fileengine"
)

func main() {
	dir := "state"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(context.Background(), dir, tickonce.Config{}, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run opens the directory, works until there is nothing to do, and closes it.
func run(ctx context.Context, dir string, config tickonce.Config, out io.Writer) (err error) {
	eng, found, err := fileengine.Open(dir, config, fileengine.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if closed := eng.Close(); err == nil {
			err = closed
		}
	}()
	for _, tail := range found.Dropped {
		fmt.Fprintf(out, "%s: cut off %d bytes at %d: %s\n", tail.File, tail.Bytes, tail.Offset, tail.Reason)
	}

	// The same in each run: a schedule that is there and has not changed stays as it is.
	if _, err := eng.Schedule(ctx, "report", "@every 1m", "reports", nil, tickonce.ScheduleOptions{
		Anchor: time.Unix(0, 0),
	}); err != nil {
		return err
	}
	if err := fire(ctx, eng.NewRunner(), config); err != nil {
		return err
	}
	for {
		job, err := eng.Claim(ctx, "reports", "worker")
		if err != nil || job == nil {
			return err
		}
		fmt.Fprintln(out, "report of", job.Boundary.UTC().Format(time.TimeOnly))
		if err := job.Ack(ctx); err != nil {
			return err
		}
	}
}

// fire steps the runner until nothing is due.
func fire(ctx context.Context, runner *tickonce.Runner, config tickonce.Config) error {
	config, err := config.WithDefaults()
	if err != nil {
		return err
	}
	for {
		next, _, err := runner.Step(ctx)
		if err != nil {
			return err
		}
		if next.After(config.Clock.Now()) {
			return runner.Stop(ctx)
		}
	}
}
