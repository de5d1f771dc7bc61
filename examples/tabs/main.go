// Command tabs serves a page whose tabs share one engine.
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
	"time"

	"github.com/tickonce/tickonce/examples/board"
)

//go:embed index.html
var index []byte

// policy lets the page run WebAssembly, and nothing that is not its own.
const policy = "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"

func main() {
	addr := flag.String("addr", "localhost:8080", "where the page is served")
	built := flag.String("package", "wasm/js/dist", "the npm package, built")
	flag.Parse()
	if _, err := os.Stat(*built); err != nil {
		log.Fatalf("%v: build the package first, in wasm/js: npm ci && npm run build", err)
	}
	started := time.Now()
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		http.ServeContent(w, r, "index.html", started, bytes.NewReader(index))
	})
	board.Serve(http.DefaultServeMux)
	http.Handle("GET /tickonce/", http.StripPrefix("/tickonce", http.FileServer(http.Dir(*built))))
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
