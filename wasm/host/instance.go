package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/tickonce/tickonce/wasm/wire"
)

// instance is one of the module, with one handle. It is not safe for concurrent
// use. What it answers points into its memory, and is good until its next call.
//
// A [*fault] is the end of it. All its other errors are [*wire.Error]s.
type instance struct {
	options Options
	module  api.Module
	said    lastWords
	handle  uint64

	exported struct{ abi, alloc, free, open, close, call, step, out, snapshot, err api.Function }
	stack    [8]uint64

	block, room uint32 // of arguments; 0: none
}

// fault is what an instance dies of.
type fault struct {
	err  error
	said string
}

func (f *fault) Error() string {
	text := f.err.Error()
	if first, _, more := strings.Cut(text, "\n"); more { // a stack of the guest follows
		text = first
	}
	if f.said != "" {
		text += ": " + f.said
	}
	return text
}

func (f *fault) Unwrap() error { return f.err }

// keptRoom is how long a block of arguments may be that is kept for shorter ones.
const keptRoom = 1 << 20

// start makes an instance without a handle.
func (m *Module) start(ctx context.Context) (*instance, error) {
	i := &instance{options: m.options}
	sink := func(w io.Writer) io.Writer {
		if w == nil {
			return &i.said
		}
		return io.MultiWriter(&i.said, w)
	}
	// Without the clocks of the system the guest's collector loses its pace.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithStdout(sink(m.options.Stdout)).WithStderr(sink(m.options.Stderr)).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader)
	var err error
	if i.module, err = m.runtime.InstantiateModule(ctx, m.compiled, config); err != nil {
		return nil, i.died(err)
	}
	f := &i.exported
	for n, to := range [len(exports)]*api.Function{
		&f.abi, &f.alloc, &f.free, &f.open, &f.close, &f.call, &f.step, &f.out, &f.snapshot, &f.err,
	} {
		*to = i.module.ExportedFunction(exports[n])
	}
	version, err := i.do(ctx, f.abi)
	if err == nil && version != wire.ABI {
		err = i.died(fmt.Errorf("the module has the ABI %d, want %d", version, wire.ABI))
	}
	if err != nil {
		i.discard()
		return nil, err
	}
	return i, nil
}

func (i *instance) died(err error) error { return &fault{err, i.said.String()} }

// discard frees the instance, dead or alive.
func (i *instance) discard() {
	if i.module != nil {
		_ = i.module.Close(context.Background()) // an exit code of no interest
	}
}

// do calls an export.
func (i *instance) do(ctx context.Context, f api.Function, arguments ...uint64) (uint64, error) {
	ctx = context.WithoutCancel(ctx) // a call that is cut short is the end of the instance
	if i.options.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, i.options.CallTimeout)
		defer cancel()
	}
	copy(i.stack[:], arguments)
	if err := f.CallWithStack(ctx, i.stack[:]); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("a call of the guest took longer than %v", i.options.CallTimeout)
		}
		return 0, i.died(err)
	}
	return i.stack[0], nil
}

// at is what lies at a place.
func (i *instance) at(place uint64) ([]byte, error) {
	b, ok := i.module.Memory().Read(uint32(place>>32), uint32(place))
	if !ok {
		return nil, i.died(errors.New("the guest points outside its memory"))
	}
	return b, nil
}

// refusal is the last error of the guest.
func (i *instance) refusal(ctx context.Context) error {
	place, err := i.do(ctx, i.exported.err)
	if err != nil {
		return err
	}
	text, err := i.at(place)
	if err != nil {
		return err
	}
	refused, err := wire.ParseError(text)
	switch {
	case err != nil:
		return i.died(fmt.Errorf("the guest's error is unreadable: %w", err))
	case refused.Code == wire.CodeInternal:
		return i.died(refused)
	}
	return refused
}

// argument writes an argument into the block; one that is too long for any is at
// 0, where the guest refuses it.
func (i *instance) argument(ctx context.Context, b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > wire.MaxBlock {
		return 0, nil
	}
	if len(b) > int(i.room) || i.room > keptRoom {
		if i.room > 0 {
			if _, err := i.do(ctx, i.exported.free, uint64(i.block)); err != nil {
				return 0, err
			}
		}
		room := max(uint32(len(b)), 4<<10)
		at, err := i.do(ctx, i.exported.alloc, uint64(room))
		if err != nil {
			return 0, err
		}
		i.block, i.room = uint32(at), room
	}
	if !i.module.Memory().Write(i.block, b) {
		return 0, i.died(errors.New("the guest's block lies outside its memory"))
	}
	return uint64(i.block), nil
}

// sizeOf is the length of an argument as the guest is told it.
func sizeOf(b []byte) uint64 { return min(uint64(len(b)), math.MaxUint32) }

// open opens the handle.
func (i *instance) open(ctx context.Context, now float64, config, snapshot, log []byte) error {
	arguments := []uint64{math.Float64bits(now)}
	for _, b := range [][]byte{config, snapshot, log} {
		at, err := i.argument(ctx, b)
		if err != nil {
			return err
		}
		arguments = append(arguments, at, sizeOf(b))
		i.block, i.room = 0, 0 // the next one has a block of its own
	}
	handle, err := i.do(ctx, i.exported.open, arguments...)
	if err != nil {
		return err
	}
	for _, at := range []uint64{arguments[1], arguments[3], arguments[5]} {
		if _, err := i.do(ctx, i.exported.free, at); err != nil {
			return err
		}
	}
	if int32(handle) < 0 {
		return i.refusal(ctx)
	}
	i.handle = handle
	return nil
}

// call is a call with its request and its reply as JSON.
func (i *instance) call(ctx context.Context, now float64, op wire.Op, request []byte) ([]byte, error) {
	at, err := i.argument(ctx, request)
	if err != nil {
		return nil, err
	}
	place, err := i.do(ctx, i.exported.call, i.handle, math.Float64bits(now), uint64(uint32(op)), at, sizeOf(request))
	if err != nil {
		return nil, err
	}
	if place == 0 {
		return nil, i.refusal(ctx)
	}
	return i.at(place)
}

// step is a step, and when the next one is due.
func (i *instance) step(ctx context.Context, now float64, most int32) (float64, error) {
	bits, err := i.do(ctx, i.exported.step, i.handle, math.Float64bits(now), uint64(uint32(most)))
	if err != nil {
		return 0, err
	}
	if next := math.Float64frombits(bits); next == next {
		return next, nil
	}
	return 0, i.refusal(ctx)
}

// out is what the last call or step put out.
func (i *instance) out(ctx context.Context) ([]byte, error) {
	place, err := i.do(ctx, i.exported.out, i.handle)
	if err != nil {
		return nil, err
	}
	return i.at(place)
}

func (i *instance) snapshot(ctx context.Context) ([]byte, error) {
	place, err := i.do(ctx, i.exported.snapshot, i.handle)
	if err != nil {
		return nil, err
	}
	if place == 0 {
		return nil, i.refusal(ctx)
	}
	return i.at(place)
}

// lastWords keeps the first bytes that are written to it: of a Go program that dies
// they say of what.
type lastWords struct{ b []byte }

const keptWords = 256

func (t *lastWords) Write(p []byte) (int, error) {
	t.b = append(t.b, p[:min(len(p), keptWords-len(t.b))]...)
	return len(p), nil
}

func (t *lastWords) String() string {
	first, _, _ := strings.Cut(strings.TrimSpace(string(t.b)), "\n")
	return first
}
