// Package host is the engine as a WebAssembly module within a Go program, over
// wazero: the engine has memory of its own, a bound to that, and the same code
// on every host.
package host
