//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// constants are those of Node's fs.constants that Go opens files with.
var constants = map[string]int{
	"O_WRONLY": unix.O_WRONLY, "O_RDWR": unix.O_RDWR, "O_CREAT": unix.O_CREAT, "O_TRUNC": unix.O_TRUNC,
	"O_APPEND": unix.O_APPEND, "O_EXCL": unix.O_EXCL, "O_DIRECTORY": unix.O_DIRECTORY,
}

// arguments are those of a call, in order.
type arguments struct {
	left []string
	err  error
}

func (a *arguments) text() string {
	if len(a.left) == 0 {
		a.err = unix.EINVAL
		return ""
	}
	first := a.left[0]
	a.left = a.left[1:]
	return first
}

func (a *arguments) number() int64 {
	n, err := strconv.ParseInt(a.text(), 10, 64)
	if err != nil {
		a.err = unix.EINVAL
	}
	return n
}

func (a *arguments) fd() int          { return int(a.number()) }
func (a *arguments) mode() uint32     { return uint32(a.number()) }
func (a *arguments) atPosition() bool { return len(a.left) > 0 && a.left[0] != "" }

// calls are the functions of Node's fs that Go calls, each with what it is
// asked to write.
var calls = map[string]func(a *arguments, body []byte) (any, error){
	"chdir":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Chdir(a.text()) },
	"getcwd":  func(*arguments, []byte) (any, error) { return os.Getwd() },
	"open":    func(a *arguments, _ []byte) (any, error) { return unix.Open(a.text(), a.fd()|unix.O_CLOEXEC, a.mode()) },
	"close":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Close(a.fd()) },
	"fsync":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Fsync(a.fd()) },
	"mkdir":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Mkdir(a.text(), a.mode()) },
	"rmdir":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Rmdir(a.text()) },
	"unlink":  func(a *arguments, _ []byte) (any, error) { return nil, unix.Unlink(a.text()) },
	"rename":  func(a *arguments, _ []byte) (any, error) { return nil, unix.Rename(a.text(), a.text()) },
	"link":    func(a *arguments, _ []byte) (any, error) { return nil, unix.Link(a.text(), a.text()) },
	"symlink": func(a *arguments, _ []byte) (any, error) { return nil, unix.Symlink(a.text(), a.text()) },
	"chmod":   func(a *arguments, _ []byte) (any, error) { return nil, unix.Chmod(a.text(), a.mode()) },
	"fchmod":  func(a *arguments, _ []byte) (any, error) { return nil, unix.Fchmod(a.fd(), a.mode()) },
	"truncate": func(a *arguments, _ []byte) (any, error) {
		return nil, unix.Truncate(a.text(), a.number())
	},
	"ftruncate": func(a *arguments, _ []byte) (any, error) {
		return nil, unix.Ftruncate(a.fd(), a.number())
	},
	"utimes": func(a *arguments, _ []byte) (any, error) {
		path, accessed, modified := a.text(), a.number(), a.number()
		return nil, os.Chtimes(path, time.Unix(accessed, 0), time.Unix(modified, 0))
	},
	"readlink": func(a *arguments, _ []byte) (any, error) { return os.Readlink(a.text()) },
	"readdir": func(a *arguments, _ []byte) (any, error) {
		entries, err := os.ReadDir(a.text())
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		return names, err
	},
	"read": func(a *arguments, _ []byte) (any, error) {
		fd, b := a.fd(), make([]byte, max(a.number(), 0))
		var n int
		var err error
		if a.atPosition() {
			n, err = unix.Pread(fd, b, a.number())
		} else {
			n, err = unix.Read(fd, b)
		}
		return b[:max(n, 0)], err
	},
	"write": func(a *arguments, body []byte) (any, error) {
		fd := a.fd()
		if a.atPosition() {
			return unix.Pwrite(fd, body, a.number())
		}
		return unix.Write(fd, body)
	},
	"stat":  func(a *arguments, _ []byte) (any, error) { return status(unix.Stat, a.text()) },
	"lstat": func(a *arguments, _ []byte) (any, error) { return status(unix.Lstat, a.text()) },
	"fstat": func(a *arguments, _ []byte) (any, error) { return status(unix.Fstat, a.fd()) },
}

// status is what Node calls Stats.
func status[F any](stat func(F, *unix.Stat_t) error, of F) (any, error) {
	var s unix.Stat_t
	err := stat(of, &s)
	return map[string]int64{
		"dev": int64(s.Dev), "ino": int64(s.Ino), "mode": int64(s.Mode), "nlink": int64(s.Nlink),
		"uid": int64(s.Uid), "gid": int64(s.Gid), "rdev": int64(s.Rdev), "size": s.Size,
		"blksize": int64(s.Blksize), "blocks": s.Blocks,
		"atimeMs": s.Atim.Nano() / 1e6, "mtimeMs": s.Mtim.Nano() / 1e6, "ctimeMs": s.Ctim.Nano() / 1e6,
	}, err
}

// serveCall makes a call of the page: the arguments are in the query, the reply
// is JSON or bytes, and an error its code with the status 409.
func serveCall(w http.ResponseWriter, r *http.Request) {
	a := &arguments{left: r.URL.Query()["a"]}
	body, err := io.ReadAll(r.Body)
	var answer any
	if call := calls[r.PathValue("call")]; err != nil {
		err = unix.EIO
	} else if call == nil {
		err = unix.ENOSYS
	} else if answer, err = call(a, body); a.err != nil {
		err = a.err
	}
	if err != nil {
		code := unix.EIO
		var found *fs.PathError
		if errors.As(err, &found) {
			err = found.Err
		}
		errors.As(err, &code)
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, unix.ErrnoName(syscall.Errno(code)))
		return
	}
	if b, ok := answer.([]byte); ok {
		w.Write(b)
		return
	}
	json.NewEncoder(w).Encode(answer)
}
