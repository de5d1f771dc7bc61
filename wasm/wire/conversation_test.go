package wire_test

import (
	"flag"
	"testing"

	"github.com/tickonce/tickonce/wasm/conversation"
	"github.com/tickonce/tickonce/wasm/wire"
)

const conversations = "../testdata/conversations"

var rewrite = flag.Bool("rewrite", false, "write what is answered into the conversations")

// native speaks with a server in this process.
type native struct{}

func (native) Open(now float64, config, snapshot, log []byte) (conversation.Handle, error) {
	s, err := wire.Open(now, config, snapshot, log)
	if err != nil {
		return nil, wire.ErrorOf(err)
	}
	return handle{s}, nil
}

type handle struct{ *wire.Server }

func (handle) Close() error { return nil }

func TestConversations(t *testing.T) {
	conversation.Run(t, conversations, native{}, *rewrite)
}
