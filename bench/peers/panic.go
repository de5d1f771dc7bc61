package peers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// panicking is the variable of the environment that names the peer in whose
// job this process is to panic.
const panicking = "TICKONCE_BENCH_PANICS_IN"

// Main is to be called first in main. A process that was started to find out
// what becomes of it when a job panics does not return from it.
func Main() {
	name, ok := os.LookupEnv(panicking)
	if !ok {
		return
	}
	for _, p := range All {
		if p.Name == name {
			fmt.Print(bubbled(panicky)(p))
		}
	}
	os.Exit(0)
}

// panics runs the program once more, since most peers end it.
func panics(p *Peer) string {
	cmd := exec.Command(must(os.Executable()))
	cmd.Env = append(os.Environ(), panicking+"="+p.Name)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	did, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && bytes.HasPrefix(failure.Bytes(), []byte("panic: the job panics")) {
		return "the process ends"
	}
	return string(must(did, err))
}

func panicky(t *trial) string {
	s := t.open()
	defer s.Stop()
	must(s.Every("job", time.Second, func() {
		t.fire()
		panic("the job panics")
	}))
	s.Start()
	return say(s, "%d fired, the process goes on", t.pass(10*time.Second+atOnce/2))
}
