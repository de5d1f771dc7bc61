// Command guest is the handler of a job as an ordinary program: it sends a report
// to the recipient on its standard input, in four parts at once, each of which the
// server may refuse. Compiled for GOOS=wasip1 it runs in the simulator, as it is.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

const parts = 4

func main() {
	recipient, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	begin := time.Now()
	sent := make(chan error)
	for part := range parts {
		go func() { sent <- send(part) }()
	}
	for range parts {
		if err := <-sent; err != nil {
			fail(err)
		}
	}
	fmt.Printf("attempt %s: sent to %s in %v\n", os.Getenv("TICKONCE_ATTEMPT"), recipient, time.Since(begin).Round(time.Second))
}

// send sends a part, which takes up to a minute.
func send(part int) error {
	time.Sleep(rand.N(time.Minute))
	if rand.IntN(20) == 0 {
		return fmt.Errorf("part %d: the server is busy", part)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
