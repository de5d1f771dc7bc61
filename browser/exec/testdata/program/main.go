// Program does what its arguments say, to be looked at from outside.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall/js"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "panic" {
		panic("on purpose")
	}
	fmt.Println(os.Args[1:], os.Getenv("WORD"), js.Global().Get("document").Truthy())
	_, err := os.Stat("missing")
	fmt.Println(os.IsNotExist(err))
	must(os.Mkdir("folder", 0o755))
	must(os.WriteFile("folder/a", []byte("Zwölf Boxkämpfer\n"), 0o644))
	fmt.Println(os.IsExist(os.Mkdir("folder", 0o755)))
	must(os.Rename("folder/a", "folder/b"))
	must(os.Chdir("folder"))
	here, err := os.Getwd()
	must(err)
	fmt.Println(filepath.Base(here))
	f, err := os.OpenFile("b", os.O_RDWR, 0)
	must(err)
	_, err = f.WriteAt([]byte("0123"), 2)
	must(err)
	_, err = f.Seek(-5, io.SeekEnd)
	must(err)
	tail, err := io.ReadAll(f)
	must(err)
	fmt.Printf("%q\n", tail)
	must(f.Truncate(6))
	must(f.Sync())
	must(f.Close())
	entries, err := os.ReadDir(".")
	must(err)
	info, err := entries[0].Info()
	must(err)
	fmt.Println(len(entries), info.Name(), info.Size(), info.Mode(), info.ModTime().Year() > 2000)
	must(os.Remove("b"))
	println("last words")
	os.Exit(3)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
