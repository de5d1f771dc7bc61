package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one planted bug: a patch, and above it a head of fields as in a
// mail.
type mutant struct {
	Name        string   // of the file, without .patch
	Description string   // what is broken
	Rules       []string // ids of docs/CONTRACT.md
	Tests       []string // folders of the packages that have to kill it, in the order to try
	Unseen      string   // why the simulator cannot see it; "" if it can

	patch []byte   // nil: nothing is changed
	files []string // that it touches, slash-separated from the module's root
}

// load reads the mutants of a folder, in the order of their names.
func load(folder string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(path), ".patch")
		mutants = append(mutants, m)
	}
	return mutants, nil
}

// parse reads a patch with its head.
func parse(text []byte) (mutant, error) {
	head, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if errors.Is(err, io.EOF) {
		return mutant{}, errors.New("no empty line behind the head")
	}
	if err != nil {
		return mutant{}, err
	}
	m := mutant{
		Description: head.Get("Description"), Unseen: head.Get("Simulator"),
		Rules: strings.Fields(head.Get("Rules")), Tests: strings.Fields(head.Get("Tests")),
	}
	for field := range head {
		switch field {
		case "Description", "Rules", "Tests", "Simulator":
		default:
			return mutant{}, fmt.Errorf("unknown field %s, want Description, Rules, Tests or Simulator", field)
		}
	}
	_, m.patch, _ = bytes.Cut(text, []byte("\n\n"))
	for line := range bytes.Lines(m.patch) {
		if file, ok := bytes.CutPrefix(line, []byte("+++ b/")); ok {
			m.files = append(m.files, string(bytes.TrimSpace(file)))
		}
	}
	switch {
	case m.Description == "" || len(m.Rules) == 0 || len(m.Tests) == 0:
		return mutant{}, errors.New("want Description, Rules and Tests in the head")
	case len(m.files) == 0:
		return mutant{}, errors.New("no file is patched: no line begins with +++ b/")
	}
	return m, nil
}
