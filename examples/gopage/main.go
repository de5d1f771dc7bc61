//go:build !js

// Command gopage builds the program of a page, page.go, with the same Go, and
// serves it together with the page.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tickonce/tickonce/examples/board"
)

//go:embed index.html
var index []byte

func main() {
	addr := flag.String("addr", "localhost:8080", "where the page is served")
	source := flag.String("source", "./examples/gopage", "the folder of this program")
	flag.Parse()
	program, err := build(*source)
	if err != nil {
		log.Fatal(err)
	}
	glue, err := glue()
	if err != nil {
		log.Fatal(err)
	}
	board.Serve(http.DefaultServeMux)
	built := time.Now()
	for name, content := range map[string][]byte{"index.html": index, "page.wasm": program, "wasm_exec.js": glue} {
		http.HandleFunc("GET /"+strings.Replace(name, "index.html", "{$}", 1), func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, name, built, bytes.NewReader(content))
		})
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// build compiles the program of the page.
func build(source string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "gopage-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "page.wasm")
	compile := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, source)
	compile.Env = append(compile.Environ(), "GOOS=js", "GOARCH=wasm")
	compile.Stderr = os.Stderr
	if err := compile.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	return os.ReadFile(out)
}

// glue is wasm_exec.js, which has to be that of the Go that compiles the
// program.
func glue() ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
}
