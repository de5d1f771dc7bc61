//go:build unix

// Exec runs a program that was built for GOOS=js in a page of a real Chromium,
// as Go's own go_js_wasm_exec does on Node:
//
//	go build -C browser -o ../bin/chromium_exec ./exec
//	GOOS=js GOARCH=wasm go test -exec "$PWD/bin/chromium_exec" ./memengine
//
// The program has the arguments, the environment, the files and the working
// directory of this process, and its exit code becomes this one's. The page
// asks for files at an address of this machine that only it knows.
package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tickonce/tickonce/browser"
)

//go:embed page.html
var page []byte

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: chromium_exec PROGRAM.wasm [ARGUMENT]...")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chromium_exec:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run runs the program to its end and answers its exit code.
func run(args []string) (int, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return 0, fmt.Errorf("go env GOROOT: %w", err)
	}
	self, err := json.Marshal(process{args, environment(), constants})
	if err != nil {
		return 0, err
	}
	secret := "/" + rand.Text()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+secret+"/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	mux.HandleFunc("GET "+secret+"/process", func(w http.ResponseWriter, _ *http.Request) { w.Write(self) })
	mux.HandleFunc("GET "+secret+"/wasm_exec.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	})
	program, err := filepath.Abs(args[0])
	if err != nil {
		return 0, err
	}
	mux.HandleFunc("GET "+secret+"/program", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, program)
	})
	mux.HandleFunc("POST "+secret+"/fs/{call}", serveCall)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	go http.Serve(listener, mux)

	chromium, stop, err := browser.Start(context.Background())
	if err != nil {
		return 0, err
	}
	defer stop()
	lost, lose := context.WithCancelCause(chromium)
	defer lose(nil)
	tab, closed := chromedp.NewContext(lost, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *inspector.EventTargetCrashed:
			lose(fmt.Errorf("the page has crashed, maybe for want of memory"))
		case *runtime.EventExceptionThrown:
			if e.ExceptionDetails.Exception != nil {
				fmt.Fprintln(os.Stderr, e.ExceptionDetails.Exception.Description)
			}
		}
	}))
	defer closed()
	if err := chromedp.Do(tab, chromedp.Navigate("http://"+listener.Addr().String()+secret+"/")); err != nil {
		return 0, err
	}
	code, err := chromedp.Run(tab, chromedp.Evaluate[int](`run()`, chromedp.EvalAwaitPromise))
	if cause := context.Cause(lost); cause != nil {
		err = cause
	}
	return code, err
}

// process is what the page tells the program of itself.
type process struct {
	Argv      []string          `json:"argv"`
	Env       map[string]string `json:"env"`
	Constants map[string]int    `json:"constants"`
}

func environment() map[string]string {
	env := map[string]string{"TMPDIR": os.TempDir()}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}
