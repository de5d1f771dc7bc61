// Package board has what the pages of the examples share: how they look, and a
// board of schedules, with a picture of what fires when and a log.
package board

import (
	"embed"
	"net/http"
)

//go:embed board.css board.js
var files embed.FS

// Serve has a server answer for the files of the board, in /board/.
func Serve(mux *http.ServeMux) {
	mux.Handle("GET /board/", http.StripPrefix("/board", http.FileServerFS(files)))
}
