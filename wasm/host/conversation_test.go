//go:build !wasm

package host

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

// compiled is the module that the tests share, compiled once.
func compiled(t testing.TB) *Module {
	m, err := compileOnce(t)
	require.NoError(t, err)
	return m
}

var once sync.Mutex

var shared *Module

func compileOnce(t testing.TB) (_ *Module, err error) {
	once.Lock()
	defer once.Unlock()
	if shared == nil {
		shared, err = Compile(context.Background(), conversation.Guest(t), Options{})
	}
	return shared, err
}

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
