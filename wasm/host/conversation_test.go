//go:build !wasm

package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// cache keeps the guest and its code for all tests, and for the processes that a
// fuzzed one starts, since to compile it takes a second and more.
var cache = os.Getenv("TICKONCE_TEST_GUEST")

func TestMain(m *testing.M) {
	if cache != "" {
		os.Exit(m.Run())
	}
	var err error
	if cache, err = os.MkdirTemp("", "guest"); err == nil {
		err = os.Setenv("TICKONCE_TEST_GUEST", cache)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(cache)
	os.Exit(code)
}

func guest(t testing.TB) []byte {
	file := filepath.Join(cache, "tickonce.wasm")
	wasm, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		wasm = conversation.Guest(t)
		conversation.Cache(t, cache)
		err = os.WriteFile(file, wasm, 0o666)
	}
	require.NoError(t, err)
	return wasm
}

// compiled is the module that the tests share.
func compiled(t testing.TB) *Module {
	once.Lock()
	defer once.Unlock()
	if shared == nil {
		var err error
		shared, err = Compile(context.Background(), guest(t), Options{CacheDir: cache})
		require.NoError(t, err)
	}
	return shared
}

var (
	once   sync.Mutex
	shared *Module
)

// raw speaks with an instance through its exports.
type raw struct{ *testing.T }

type rawHandle struct {
	raw
	*instance
}

func (r raw) Open(now float64, config, snapshot, log []byte) (conversation.Handle, error) {
	i, err := compiled(r).start(r.Context())
	require.NoError(r, err)
	if err := i.open(r.Context(), now, config, snapshot, log); err != nil {
		i.discard()
		return nil, err
	}
	return rawHandle{r, i}, nil
}

func (h rawHandle) Call(now float64, op wire.Op, request []byte) ([]byte, error) {
	reply, err := h.call(h.Context(), now, op, request)
	return bytes.Clone(reply), err
}

func (h rawHandle) Step(now float64, most int32) (float64, error) {
	return h.step(h.Context(), now, most)
}

func (h rawHandle) Out() []byte {
	b, err := h.out(h.Context())
	require.NoError(h, err)
	return bytes.Clone(b)
}

func (h rawHandle) Snapshot() ([]byte, error) {
	b, err := h.snapshot(h.Context())
	return bytes.Clone(b), err
}

func (h rawHandle) Close() error {
	h.discard()
	return nil
}

const conversations = "../testdata/conversations"

func TestConversationsWithTheGuest(t *testing.T) {
	conversation.Run(t, conversations, raw{t}, false)
}
