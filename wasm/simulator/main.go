// Simulator is package sim as a program for WASI: it runs the scenario on its
// standard input, and writes what that comes to, as it is recorded in a scenario
// file, to its standard output.
//
//	GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o simulator.wasm ./wasm/simulator
//	wasmtime simulator.wasm <my.sim
//
// With a range of seeds as its argument, as 1..100, it sweeps them, and writes the
// digest of the sweep. It ends with the exit code 0, whatever the verdict is, or
// with 1 and a message if it could not run the scenario.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/tickonce/tickonce/sim"
)

func main() {
	if err := simulate(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func simulate(args []string, in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(in, sim.MaxFile+1))
	if err != nil {
		return err
	}
	scenario, err := sim.Parse("scenario", string(text))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		result, err := sim.Run(scenario)
		if err == nil {
			_, err = io.WriteString(out, result.Outcome())
		}
		return err
	}
	seeds, err := sim.ParseSeeds(args[0])
	if err != nil {
		return err
	}
	sweep, err := sim.Sweep(scenario, seeds)
	if err == nil {
		_, err = fmt.Fprintf(out, "digest   %s\n", sweep.Digest)
	}
	return err
}
