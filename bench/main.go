// Command bench measures the engine in memory beside a bare heap and beside
// other libraries, in one run: what a fire costs, in time, allocations and
// memory, and what the calls of a queue cost. docs/BENCHMARKS.md and
// docs/PEERS.md say how to read it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tickonce/tickonce/bench/peers"
)

func main() {
	peers.Main()
	if err := measure(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usage = `Measures the engine in memory beside a bare heap and beside other libraries.
docs/BENCHMARKS.md and docs/PEERS.md say how to read the tables.

  go run .                              all of it, in a few minutes
  go run . -n 10000 -r 3 -peers ""      the engine alone, with 10,000 schedules
  go run . -n "" -peers 10000 -r 3      other libraries beside it
  go run . -jobs 10000000 -peers ""     the engine alone, and 10,000,000 jobs through it

`

func measure(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	sizes := flags.String("n", "10000,100000,1000000", "numbers of schedules, each from 1000 to 1000000; none: leave out the engine by itself")
	peerSizes := flags.String("peers", "10000,100000", "the same beside other libraries; none: leave them out")
	jobs := flags.Int("jobs", 0, "how many jobs go through an engine with each number of schedules, at least 1000; 0: leave them out")
	repetitions := flags.Int("r", 15, "repetitions of each measurement")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	markdown := flags.String("markdown", "", "write the comparison with other libraries to this `file`")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	_ = flags.Parse(args) // exits on an error
	alone, errAlone := parseSizes("n", *sizes)
	beside, errBeside := parseSizes("peers", *peerSizes)
	if err := errors.Join(errAlone, errBeside); err != nil {
		return err
	}
	if *repetitions < 1 {
		return fmt.Errorf("-r: %d is not a number from 1 on", *repetitions)
	}
	if *jobs != 0 && *jobs < 1000 {
		return fmt.Errorf("-jobs: %d is not 0 or a number from 1000 on", *jobs)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag, see bench -h", flags.Arg(0))
	}
	var measures []func() ([]row, error)
	for _, n := range alone {
		measures = append(measures, func() ([]row, error) { return measureFires(n, *repetitions, 100) })
	}
	if len(alone) > 0 {
		kept := min(diskSchedules, slices.Min(alone))
		measures = append(measures, measureQueue, measureSkip, func() ([]row, error) { return measureDisk(kept, *repetitions) })
	}
	if *jobs > 0 {
		measures = append(measures, func() ([]row, error) { return measureJobs(alone, *jobs) })
	}
	for _, n := range beside {
		measures = append(measures, func() ([]row, error) { return measurePeers(n, *repetitions) })
	}
	var rows []row
	for _, measure := range measures {
		more, err := measure()
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	if *markdown != "" {
		page, err := newPeersPage(*peerSizes, *repetitions, rows)
		if err != nil {
			return err
		}
		return os.WriteFile(*markdown, page, 0o644)
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	fmt.Fprintln(out, newTable(rows).Render())
	return nil
}

// parseSizes reads a flag's list of numbers of schedules.
func parseSizes(flag, list string) (sizes []int, err error) {
	if list == "" {
		return nil, nil
	}
	for _, size := range strings.Split(list, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1000 || n > 1_000_000 {
			return nil, fmt.Errorf("-%s: %q is not a number from 1000 to 1000000", flag, size)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
