//go:build wasm

// Guest is the engine as a WebAssembly module: a reactor whose exports are
// those of ../ABI.md. It is built by
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o tickonce.wasm ./wasm/guest
package main

import (
	"math"
	"unsafe"

	"github.com/tickonce/tickonce/wasm/wire"
)

// The memory that is handed to the host and back. Blocks and replies are kept
// here, so that the collector leaves them alone while only the host knows them.
var (
	blocks  = map[uint32][]byte{}
	reply   []byte
	failure []byte
)

// The handles that are open.
var (
	handles = map[int32]*wire.Server{}
	last    int32
)

func main() {} // a reactor's is not called

// fail keeps the error for the host to read.
func fail(err error) { failure = wire.ErrorOf(err).Text() }

// contained keeps what a call panics with as its error. A panic that gets here
// is none of a handle, whose own are contained there.
func contained(failed func()) {
	if p := recover(); p != nil {
		fail(&wire.Error{Code: wire.CodeInternal, Message: "a fault of the guest"})
		failed()
	}
}

//go:wasmexport tk_abi
func abi() int32 { return wire.ABI }

//go:wasmexport tk_alloc
func alloc(n uint32) uint32 {
	if n == 0 || n > wire.MaxBlock {
		return 0
	}
	block := make([]byte, n)
	at := address(block)
	blocks[at] = block
	return at
}

//go:wasmexport tk_free
func free(at uint32) { delete(blocks, at) }

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// argument is what the host has written at the beginning of a block of its own.
func argument(name string, at, n uint32) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if n > wire.MaxBlock {
		return nil, &wire.RequestError{Where: name, Problem: "is longer than 2^30 bytes"}
	}
	block := blocks[at]
	if uint64(n) > uint64(len(block)) {
		return nil, &wire.RequestError{Where: name, Problem: "lies in no block that tk_alloc gave"}
	}
	return block[:n], nil
}

// answered is the place of a reply, which stays until the next one.
func answered(b []byte) int64 {
	reply = b
	return int64(address(b))<<32 | int64(len(b))
}

//go:wasmexport tk_open
func open(now float64, config, configLen, snapshot, snapshotLen, log, logLen uint32) (handle int32) {
	defer contained(func() { handle = -1 })
	var arguments [3][]byte
	for i, a := range [...]struct {
		name  string
		at, n uint32
	}{{"the config", config, configLen}, {"the snapshot", snapshot, snapshotLen}, {"the log", log, logLen}} {
		b, err := argument(a.name, a.at, a.n)
		if err != nil {
			fail(err)
			return -1
		}
		arguments[i] = b
	}
	server, err := wire.Open(now, arguments[0], arguments[1], arguments[2])
	if err != nil {
		fail(err)
		return -1
	}
	last++
	handles[last] = server
	return last
}

//go:wasmexport tk_close
func closeHandle(handle int32) { delete(handles, handle) }

// opened is an open handle, or nil with an error.
func opened(handle int32) *wire.Server {
	server := handles[handle]
	if server == nil {
		fail(&wire.Error{Code: wire.CodeClosed, Message: "there is no such handle: it was closed, or never opened"})
	}
	return server
}

//go:wasmexport tk_call
func call(handle int32, now float64, op int32, request, requestLen uint32) (place int64) {
	defer contained(func() { place = 0 })
	server := opened(handle)
	if server == nil {
		return 0
	}
	text, err := argument("the request", request, requestLen)
	if err != nil {
		server.Drop()
		fail(err)
		return 0
	}
	defer collect()
	answer, err := server.Call(now, wire.Op(op), text)
	if err != nil {
		fail(err)
		return 0
	}
	return answered(answer)
}

//go:wasmexport tk_step
func step(handle int32, now float64, most int32) (next float64) {
	defer contained(func() { next = math.NaN() })
	server := opened(handle)
	if server == nil {
		return math.NaN()
	}
	defer collect()
	next, err := server.Step(now, most)
	if err != nil {
		fail(err)
	}
	return next
}

//go:wasmexport tk_out
func out(handle int32) int64 {
	server := opened(handle)
	if server == nil {
		return 0
	}
	b := server.Out()
	return int64(address(b))<<32 | int64(len(b))
}

//go:wasmexport tk_snapshot
func snapshot(handle int32) (place int64) {
	defer contained(func() { place = 0 })
	server := opened(handle)
	if server == nil {
		return 0
	}
	b, err := server.Snapshot()
	if err != nil {
		fail(err)
		return 0
	}
	return answered(b)
}

//go:wasmexport tk_error
func lastError() int64 { return int64(address(failure))<<32 | int64(len(failure)) }
