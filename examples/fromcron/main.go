// Command fromcron moves the schedules of a program that used
// github.com/robfig/cron, and shows what is different afterwards.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/tickonce/tickonce"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	for _, part := range []struct {
		title string
		show  func(context.Context, io.Writer) error
	}{
		{"What becomes of each task", moveTasks},
		{"What other texts are answered", tryOthers},
		{"Nobody runs a 10 min schedule for 3 h", missRuns},
		{"A 72 h schedule in a program that restarts every 48 h, for 30 days", restart},
		{"A run takes 25 min on a 10 min schedule, for 2 h 15 min", overlap},
	} {
		fmt.Fprintf(w, "== %s\n", part.title)
		if err := part.show(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// moveTasks registers the tasks. A program does so at each start.
func moveTasks(ctx context.Context, w io.Writer) error {
	p, err := start(nil, w)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "TASK\tCRON\tHERE\tNEXT")
	for _, t := range tasks {
		if t.yearly {
			at, err := scheduleYearly(ctx, p.eng.Engine, t.name, p.now)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%s\ta job\t%s\n", t.name, t.cron, at.Format(time.DateTime))
			continue
		}
		spec := t.spec
		if spec == "" {
			spec = t.cron
		}
		s, err := p.eng.Schedule(ctx, t.name, spec, "maintenance", nil, tickonce.ScheduleOptions{
			Anchor:  t.anchor,
			CatchUp: tickonce.CatchUpLatest, // a missed one is done once, late
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.name, t.cron, s.Spec, s.Next.Format(time.DateTime))
	}
	return nil
}

// scheduleYearly stands in for @annually, which no interval keeps: a job for
// the next New Year's Day. Who handles it calls scheduleYearly again. With the
// key it can be called at each start, too.
func scheduleYearly(ctx context.Context, eng *tickonce.Engine, name string, now time.Time) (time.Time, error) {
	at := time.Date(now.Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	_, err := eng.Enqueue(ctx, "maintenance", []byte(name), tickonce.EnqueueOptions{RunAt: at, Key: name})
	return at, err
}

// tryOthers prints what is said of specs that people try.
func tryOthers(_ context.Context, w io.Writer) error {
	for _, text := range otherSpecs {
		spec, err := tickonce.ParseSpec(text)
		if err != nil {
			fmt.Fprintln(w, err)
			continue
		}
		fmt.Fprintf(w, "%q is a spec: %v\n", text, spec.Interval())
	}
	return nil
}
