// Command wasmtime runs the engine as a WebAssembly module within wasmtime: a
// report every second, until it is interrupted. It uses nothing of the project's Go
// packages but the module: what it says to that is wasm/ABI.md. Its state is in a
// folder, and not even a crash loses anything of it.
//
//	wasmtime MODULE [DIRECTORY]
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: wasmtime MODULE [DIRECTORY]")
	}
	dir := "state"
	if len(os.Args) > 2 {
		dir = os.Args[2]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	wasm, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	m, err := compile(wasm)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, m, dir, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// The calls that are made here, by their numbers.
const (
	opSchedule = 1
	opStart    = 33
	opWork     = 35
	opEnd      = 37
	opRecovery = 38
)

// engine is a guest with its journal in a file.
type engine struct {
	*guest
	log *os.File
}

func now() float64 { return float64(time.Now().UnixMilli()) }

// run opens the engine, works until ctx ends, and keeps the state.
func run(ctx context.Context, m *module, dir string, out io.Writer) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	state := filepath.Join(dir, "snapshot")
	snapshot, err := os.ReadFile(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	behind, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	g, err := m.open(now(), []byte(`{"seed":"1","journal":true}`), snapshot, behind)
	if err != nil {
		return err
	}
	e := &engine{g, file}
	var found struct {
		Recovery struct {
			Torn   string
			Offset int64
		}
	}
	if err := e.ask(opRecovery, `{}`, &found); err != nil {
		return err
	}
	if found.Recovery.Torn != "" { // by a crash: nothing may be written behind it
		if err := file.Truncate(found.Recovery.Offset); err != nil {
			return err
		}
	}

	// Of what was missed while nothing ran, the last one is enough.
	for _, c := range []struct {
		op      int32
		request string
	}{
		{opSchedule, `{"name":"report","spec":"@every 1s","queue":"reports","options":{"anchor":0,"catchUp":{"count":1,"newest":true}}}`},
		{opStart, `{}`},
		{opWork, `{"queue":"reports"}`},
	} {
		if err := e.ask(c.op, c.request, nil); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		next, err := e.turn(out)
		if err != nil {
			return err
		}
		// A timer may stand still while a machine sleeps, so none is long.
		wait := min(max(next-now(), 0), 1000)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(wait) * time.Millisecond):
		}
	}

	// A snapshot takes the place of the log.
	if snapshot, err = e.snapshot(); err != nil {
		return err
	}
	if err := replace(state, snapshot); err != nil {
		return err
	}
	return file.Truncate(0)
}

// replace replaces a file as a whole, or not at all.
func replace(name string, content []byte) error {
	file, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// turn steps once, calls the handler with each job that was begun, and answers when
// the next step is due.
func (e *engine) turn(out io.Writer) (next float64, err error) {
	if next, err = e.step(now(), 0); err != nil {
		return 0, err
	}
	put, err := e.stored()
	if err != nil {
		return 0, err
	}
	for kind, body := range records(put) {
		switch kind {
		case begunRecord:
			number := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(body[at:])) }
			run, boundary := number(0), time.UnixMilli(int64(number(16))).UTC()
			end := map[string]any{"run": run}
			if _, err := fmt.Fprintln(out, "report of", boundary.Format(time.TimeOnly)); err != nil {
				end["error"] = map[string]any{"message": err.Error()}
			}
			request, err := json.Marshal(end)
			if err != nil {
				return 0, err
			}
			if err := e.ask(opEnd, string(request), nil); err != nil {
				return 0, err
			}
			next = 0 // it is written by a step
		case stoppedRecord:
			return 0, errors.New("the engine has stopped by itself")
		}
	}
	return next, nil
}

// ask makes a call, and reads its reply once what it wrote is stored.
func (e *engine) ask(op int32, request string, reply any) error {
	text, err := e.call(now(), op, []byte(request))
	if err != nil {
		return err
	}
	if _, err := e.stored(); err != nil || reply == nil {
		return err
	}
	return json.Unmarshal(text, reply)
}

// stored is what the last call or step put out, of which the journal is stored.
func (e *engine) stored() ([]byte, error) {
	put, err := e.out()
	if err != nil {
		return nil, err
	}
	written := false
	for kind, body := range records(put) {
		if kind == journalRecord {
			n := binary.LittleEndian.Uint32(body)
			if _, err := e.log.Write(body[4 : 4+n]); err != nil {
				return nil, err
			}
			written = true
		}
	}
	if written {
		err = e.log.Sync()
	}
	return put, err
}
