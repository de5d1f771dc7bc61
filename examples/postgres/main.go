// Command postgres is a service in three processes on one PostgreSQL, whose
// leader is killed: another takes over, and every boundary has fired once.
//
// service.go is what a service of one's own has; the rest shows it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once

	var err error
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		var s settings
		if s, err = settingsFromEnvironment(); err == nil {
			err = serve(ctx, s, slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: short})))
		}
	} else {
		err = demonstrate(ctx, os.Stdout, 3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

// demonstrate runs the service in three processes, kills the one that leads, in
// the middle of a job, when so many reports were sent, and stops the others when
// they have sent as many, and that one.
func demonstrate(ctx context.Context, out io.Writer, reports int) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it takes too long"))
	defer cancel()
	database := os.Getenv("DATABASE_URL")
	if database == "" {
		var stop func()
		if database, stop, err = startServer(ctx); err != nil {
			return err
		}
		defer stop()
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := clean(ctx, pool); err != nil {
		return err
	}

	d := &demonstration{out: out, pool: pool, processes: make(map[string]*process)}
	defer d.stop()
	for _, name := range []string{"anna", "bert", "carl"} {
		if err := d.start(name, database); err != nil {
			return err
		}
	}
	first, err := d.leader(ctx, "")
	if err != nil {
		return err
	}
	d.say("%s leads: it fires the schedule, and all three work its jobs", first)
	if err := d.sent(ctx, time.Time{}, reports); err != nil {
		return err
	}
	if err := d.working(ctx, first, true); err != nil {
		return err
	}
	d.say("kill -9 %s, while it sends a report", first)
	killed := time.Now()
	if err := d.processes[first].kill(); err != nil {
		return err
	}
	second, err := d.leader(ctx, first)
	if err != nil {
		return err
	}
	d.say("%s leads, %.1f s after %s was killed, and first fires what was due meanwhile", second, time.Since(killed).Seconds(), first)
	if err := d.sent(ctx, time.Now(), reports); err != nil {
		return err
	}
	if err := d.working(ctx, first, false); err != nil {
		return err
	}
	d.say("SIGTERM: they finish what they have begun, and end")
	if err := d.stop(); err != nil {
		return err
	}
	return d.sum(ctx)
}

// clean removes what an earlier demonstration has left.
func clean(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "drop schema if exists "+schema+" cascade; drop table if exists tickonce_example_sent")
	if err != nil {
		return err
	}
	return migrate(ctx, pool)
}

type demonstration struct {
	out       io.Writer
	writing   sync.Mutex
	pool      *pgxpool.Pool
	processes map[string]*process
}

type process struct {
	*exec.Cmd
	copied chan struct{} // closed after its last line
}

// start starts this program again, as the service.
func (d *demonstration) start(name, database string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{exec.Command(program, "serve"), make(chan struct{})}
	p.Env = append(os.Environ(), "DATABASE_URL="+database, "NAME="+name, "LEASE=2s")
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is ours
	p.Stderr = os.Stderr
	lines, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return err
	}
	d.processes[name] = p
	go func() {
		defer close(p.copied)
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			d.write(name + "  " + scanner.Text())
		}
	}()
	return nil
}

func (p *process) kill() error {
	if err := p.Process.Kill(); err != nil {
		return err
	}
	<-p.copied
	_ = p.Wait() // it was killed
	return nil
}

// stop stops the processes that run, and reports those that failed.
func (d *demonstration) stop() (err error) {
	for _, p := range d.processes {
		if p.ProcessState == nil {
			_ = p.Process.Signal(syscall.SIGTERM)
		}
	}
	for name, p := range d.processes {
		if p.ProcessState == nil {
			<-p.copied
			if ended := p.Wait(); ended != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", name, ended))
			}
		}
	}
	return err
}

// leader waits until another process than the one named leads.
func (d *demonstration) leader(ctx context.Context, another string) (name string, err error) {
	err = d.until(ctx, func() (bool, error) {
		var owner string
		err := d.pool.QueryRow(ctx, `select owner from `+schema+`.lease where lock = '__alkstore_scheduler'`).Scan(&owner)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		name, _, _ = strings.Cut(owner, "-")
		return name != another, err
	})
	return name, err
}

// sent waits until so many reports were sent of boundaries after an instant.
func (d *demonstration) sent(ctx context.Context, after time.Time, reports int) error {
	return d.until(ctx, func() (bool, error) {
		var n int
		err := d.pool.QueryRow(ctx, `select count(*) from tickonce_example_sent where boundary > $1`, after).Scan(&n)
		return n >= reports, err
	})
}

// working waits until a process has a job in hand whose report is not sent or,
// also in the name of one that was killed, has none any more.
func (d *demonstration) working(ctx context.Context, name string, has bool) error {
	return d.until(ctx, func() (does bool, err error) {
		err = d.pool.QueryRow(ctx, `
select exists (select from `+schema+`.job where state = 2 and worker like $1
  and not exists (select from tickonce_example_sent where job = id))`, name+"-%").Scan(&does)
		return does == has, err
	})
}

func (d *demonstration) until(ctx context.Context, holds func() (bool, error)) error {
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sum checks, by the service's own table, that each boundary from the first one
// to the schedule's next has fired once.
func (d *demonstration) sum(ctx context.Context) error {
	eng, err := pgengine.New(ctx, d.pool, tickonce.Config{}, pgengine.Options{Schema: schema})
	if err != nil {
		return err
	}
	schedule, _, err := eng.Lookup(ctx, "report")
	if err != nil {
		return err
	}
	queue, err := eng.Queue(ctx, "reports")
	if err != nil {
		return err
	}
	var jobs, boundaries, again int64
	var first time.Time
	err = d.pool.QueryRow(ctx, `
select count(*), count(distinct boundary), count(*) filter (where attempt > 1), min(boundary) from tickonce_example_sent`).
		Scan(&jobs, &boundaries, &again, &first)
	if err != nil {
		return err
	}
	due := int64(schedule.Next.Sub(first) / time.Second)
	waiting := queue.Pending + queue.Claimed
	twice, lost := jobs-boundaries, due-boundaries-waiting
	d.say("%d boundaries were due: %d reports were sent, %d of them at the second attempt; %d wait, %d fired twice, %d are lost",
		due, jobs, again, waiting, twice, lost)
	if twice != 0 || lost != 0 {
		return errors.New("that is not what was promised")
	}
	return nil
}

// say writes a line of the demonstration's own.
func (d *demonstration) say(format string, args ...any) {
	d.write("\n== " + fmt.Sprintf(format, args...))
}

func (d *demonstration) write(line string) {
	d.writing.Lock()
	defer d.writing.Unlock()
	fmt.Fprintln(d.out, line)
}

// short leaves out of a log what a demonstration does not need.
func short(_ []string, a slog.Attr) slog.Attr {
	switch {
	case a.Key == slog.LevelKey:
		return slog.Attr{}
	case a.Key == slog.TimeKey, a.Value.Kind() == slog.KindTime:
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("15:04:05.000"))
	}
	return a
}
