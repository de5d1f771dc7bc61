// Command bench measures the engine in memory beside a bare heap, in one run:
// what a fire costs, in time, allocations and memory, and what the calls of a
// queue cost. docs/BENCHMARKS.md says how to read it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := measure(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	sizes := flags.String("n", "10000,100000,1000000", "numbers of schedules, each from 1000 to 1000000")
	repetitions := flags.Int("r", 15, "repetitions of each measurement")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	_ = flags.Parse(args) // exits on an error
	var rows []row
	for _, size := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1000 || n > 1_000_000 {
			return fmt.Errorf("-n: %q is not a number from 1000 to 1000000", size)
		}
		fires, err := measureFires(n, *repetitions, 100)
		if err != nil {
			return err
		}
		rows = append(rows, fires...)
	}
	for _, measure := range []func() ([]row, error){measureQueue, measureSkip} {
		more, err := measure()
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	printTable(out, rows)
	return nil
}
