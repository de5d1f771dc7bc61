package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// compiled is the guest that the tests share.
func compiled(t testing.TB) *module {
	wasm := conversation.Guest(t)
	once.Do(func() {
		var err error
		shared, err = compile(wasm)
		require.NoError(t, err)
	})
	return shared
}

var (
	once   sync.Once
	shared *module
)

// reports runs the program on a folder for a while.
func reports(t *testing.T, dir string, out io.Writer) {
	ctx, cancel := context.WithTimeout(t.Context(), 2400*time.Millisecond)
	defer cancel()
	require.NoError(t, run(ctx, compiled(t), dir, out))
}

// Each second's report while it runs, and one of those that were missed between two
// runs.
func TestARunGoesOnWhereTheLastOneEnded(t *testing.T) {
	compiled(t)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		dir := t.TempDir()
		reports(t, dir, &out)
		time.Sleep(time.Hour)
		reports(t, dir, &out)
		require.Equal(t, "report of 00:00:01\nreport of 00:00:02\n"+
			"report of 01:00:02\nreport of 01:00:03\nreport of 01:00:04\n", out.String())
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		require.Empty(t, log, "the snapshot has it")
	})
}

// crash keeps what is stored when a report is written, as a crash would leave it.
type crash struct {
	bytes.Buffer
	dir string
	log []byte
}

func (c *crash) Write(p []byte) (int, error) {
	var err error
	if c.log, err = os.ReadFile(filepath.Join(c.dir, "log")); err != nil {
		return 0, err
	}
	return c.Buffer.Write(p)
}

// After a crash in the middle of a report, and of a record of the journal, that
// report is made again once its claim has lapsed, and no other.
func TestD4ACrashLosesNothing(t *testing.T) {
	compiled(t)
	synctest.Test(t, func(t *testing.T) {
		first := crash{dir: t.TempDir()}
		reports(t, first.dir, &first)
		require.Equal(t, "report of 00:00:01\nreport of 00:00:02\n", first.String())
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), append(first.log, 1), 0o666))
		time.Sleep(time.Hour)
		second := crash{dir: dir}
		reports(t, dir, &second)
		require.Equal(t, "report of 00:00:02\nreport of 01:00:02\nreport of 01:00:03\nreport of 01:00:04\n", second.String())

		dir = t.TempDir() // what was written behind the crash is whole
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log"), second.log, 0o666))
		var third bytes.Buffer
		reports(t, dir, &third)
		require.Equal(t, "report of 01:00:05\nreport of 01:00:06\nreport of 01:00:07\n", third.String())
	})
}

func TestWhatIsNoModule(t *testing.T) {
	_, err := compile([]byte("<!doctype html>"))
	require.Error(t, err)
}

// peer speaks the conversations.
type peer struct{ *testing.T }

type handle struct {
	peer
	*guest
}

func (p peer) Open(now float64, config, snapshot, log []byte) (conversation.Handle, error) {
	g, err := compiled(p).open(now, config, snapshot, log)
	if err != nil {
		return nil, refused(err)
	}
	return handle{p, g}, nil
}

func (h handle) Call(now float64, op wire.Op, request []byte) ([]byte, error) {
	reply, err := h.call(now, int32(op), request)
	return reply, refused(err)
}

func (h handle) Step(now float64, most int32) (float64, error) {
	next, err := h.step(now, most)
	return next, refused(err)
}

func (h handle) Out() []byte {
	put, err := h.out()
	require.NoError(h, err)
	return put
}

func (h handle) Snapshot() ([]byte, error) {
	b, err := h.snapshot()
	return b, refused(err)
}

func (h handle) Close() error {
	h.store.Close()
	return nil
}

// refused is the guest's error as the conversations take it.
func refused(err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return &wire.Error{Code: r.Code, Message: r.Message}
	}
	return err
}

func TestConversations(t *testing.T) {
	conversation.Run(t, "../../wasm/testdata/conversations", peer{t}, false)
}
