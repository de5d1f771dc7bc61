package crashtest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
)

// environment is the variable that has this binary play a part instead of
// running tests: a part as JSON.
const environment = "CRASHTEST_PART"

func TestMain(m *testing.M) {
	text := os.Getenv(environment)
	if text == "" {
		_ = flag.Set("test.parallel", "8") // they wait for leases and the server, not for processors
		os.Exit(pgtest.Main(m))
	}
	go func() { // who started this process is gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.play(ctx)
	}
	if err == nil {
		<-ctx.Done()
	}
	if err != nil {
		say("failed", err)
		os.Exit(1)
	}
}

// say tells whoever started this process something, in a line: what happened,
// and more.
func say(what string, more ...any) {
	line := what
	for _, word := range more {
		line += " " + strings.ReplaceAll(fmt.Sprint(word), "\n", " ")
	}
	fmt.Println(line) // in one write
}

// freeze stops this process until somebody continues it. The system may let the
// caller run a little longer, so it waits for the continuation itself.
func freeze() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-continued
}

// crew are the processes of a test.
type crew struct {
	t     *testing.T
	lines chan line
	alive map[*process]bool
	said  []line // the latest
}

type process struct {
	part  part
	cmd   *exec.Cmd
	ended bool // it is to end, or has
}

// line is what a process has said, or its end.
type line struct {
	by         *process
	what, more string
	ended      bool
	err        error // of the end
}

func (l line) String() string { return fmt.Sprint(l.by.part.Name, ": ", l.what, " ", l.more) }

func newCrew(t *testing.T) *crew {
	c := &crew{t: t, lines: make(chan line, 1<<16), alive: map[*process]bool{}}
	t.Cleanup(func() {
		for p := range c.alive {
			_ = p.cmd.Process.Kill()
		}
		for len(c.alive) > 0 {
			c.take(<-c.lines)
		}
		if t.Failed() {
			for _, l := range c.said {
				t.Log(l)
			}
		}
	})
	return c
}

// start starts a process. It is in a group of its own: should the tests end while
// it is frozen, the system continues it.
func (c *crew) start(p part) *process {
	c.t.Helper()
	text, err := json.Marshal(p)
	require.NoError(c.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), environment+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_, err = cmd.StdinPipe()
	require.NoError(c.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, cmd.Start())
	started := &process{part: p, cmd: cmd}
	c.alive[started] = true
	go func() {
		for said := bufio.NewScanner(out); said.Scan(); {
			what, more, _ := strings.Cut(said.Text(), " ")
			c.lines <- line{by: started, what: what, more: more}
		}
		c.lines <- line{by: started, what: "ended", ended: true, err: cmd.Wait()}
	}()
	return started
}

// next is what is said next, by anybody. Nobody ends by itself.
func (c *crew) next() line {
	c.t.Helper()
	l := <-c.lines
	c.take(l)
	require.NotEqual(c.t, "failed", l.what, l)
	require.True(c.t, l.by.ended || !l.ended, "%s has ended: %v", l.by.part.Name, l.err)
	return l
}

func (c *crew) take(l line) {
	if c.said = append(c.said, l); len(c.said) > 200 {
		c.said = c.said[100:]
	}
	if l.ended {
		delete(c.alive, l.by)
	}
}

// until returns what the process has to say of that kind.
func (c *crew) until(p *process, what string) line {
	c.t.Helper()
	for {
		l := c.next()
		if l.by == p && l.what == what {
			return l
		}
	}
}

func (c *crew) signal(p *process, s syscall.Signal) {
	c.t.Helper()
	p.ended = p.ended || s == syscall.SIGKILL || s == syscall.SIGTERM
	require.NoError(c.t, p.cmd.Process.Signal(s))
}

// stopped returns once the process is frozen.
func (c *crew) stopped(p *process) {
	c.t.Helper()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(c.t, err)
	require.Equal(c.t, p.cmd.Process.Pid, pid)
	require.True(c.t, status.Stopped(), "%s has ended", p.part.Name)
}

// dismiss ends all processes and has each go on to its end.
func (c *crew) dismiss(hear func(line)) {
	c.t.Helper()
	for p := range c.alive {
		c.signal(p, syscall.SIGCONT)
		c.signal(p, syscall.SIGTERM)
	}
	for len(c.alive) > 0 {
		l := c.next()
		hear(l)
		if l.ended {
			require.NoError(c.t, l.err, l.by.part.Name)
		}
	}
}
