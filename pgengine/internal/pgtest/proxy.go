package pgtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Verdict is what becomes of a statement on its way through a [Proxy].
type Verdict uint8

// The verdicts. Of both losses the client sees the same: its connection ends.
const (
	Pass        Verdict = iota
	LoseRequest         // the server does not get it; what was not committed before is undone
	LoseReply           // the server does it, and commits unless in a transaction
)

// Proxy stands between clients and a server. Its methods are safe for concurrent
// use.
type Proxy struct {
	server   *Server
	port     uint16
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	decide  func(sql string) Verdict
	lost    int
	refuses bool
	deaf    bool
	conns   map[*proxied]struct{}
}

// Proxy begins one that passes all on, and ends it when the test ends.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{server: s, port: uint16(5432 + s.proxies.Add(1)), conns: map[*proxied]struct{}{}}
	listener, err := net.Listen("unix", s.socket(p.port))
	require.NoError(t, err)
	p.listener = listener
	p.running.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.Cut()
		p.running.Wait()
	})
	return p
}

func (s *Server) socket(port uint16) string {
	return filepath.Join(s.folder, fmt.Sprintf(".s.PGSQL.%d", port))
}

// Config is [Server.Config] through the proxy.
func (p *Proxy) Config(t testing.TB, role string) *pgxpool.Config {
	t.Helper()
	config := p.server.Config(t, role)
	config.ConnConfig.Port = p.port
	return config
}

// Decide has the function asked for the verdict of each statement that a client
// wants done, in the order in which a connection sends them. The connections ask
// one at a time. A batch outside of a transaction is one: who loses a part of it
// loses the same of all.
func (p *Proxy) Decide(verdict func(sql string) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = verdict
}

// Lose has the next statement lost that contains the text, and no other.
func (p *Proxy) Lose(verdict Verdict, text string) {
	done := false
	p.Decide(func(sql string) Verdict {
		if done || !strings.Contains(sql, text) {
			return Pass
		}
		done = true
		return verdict
	})
}

// Lost is how many statements were lost.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Refuse has new connections end at once, or not any more.
func (p *Proxy) Refuse(refuses bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuses
}

// Deafen keeps from clients the notifications that come while they ask for
// nothing, as a pooler in transaction mode does.
func (p *Proxy) Deafen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = true
}

func (p *Proxy) deafened() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaf
}

// Cut ends all connections that there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.cut()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server.socket(5432))
		if err != nil {
			client.Close()
			continue
		}
		c := &proxied{proxy: p, client: client, server: server, texts: map[string]string{}, syncs: 1, lostAt: -1}
		p.mu.Lock()
		if p.refuses {
			c.cut()
		}
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.running.Go(c.requests)
		p.running.Go(c.replies)
	}
}

func (p *Proxy) verdict(sql string) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decide == nil {
		return Pass
	}
	verdict := p.decide(sql)
	if verdict != Pass {
		p.lost++
	}
	return verdict
}

// proxied is one connection.
type proxied struct {
	proxy          *Proxy
	client, server net.Conn
	texts          map[string]string // of the statements that were prepared, by name

	mu     sync.Mutex
	syncs  int // requests that the server ends with a "ready for query": the start, each query, each sync
	readys int
	lostAt int // cut at this one, and pass no reply on before; -1: not
}

func (c *proxied) cut() {
	c.client.Close()
	c.server.Close()
}

func (c *proxied) end() {
	c.cut()
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.conns, c)
}

// requests passes on what the client sends.
func (c *proxied) requests() {
	defer c.end()
	typed := false // the first message has no type
	for {
		m, err := readMessage(c.client, typed)
		if err != nil {
			return
		}
		typed = true
		if sql, ok := c.statement(m); ok {
			switch c.proxy.verdict(sql) {
			case LoseRequest:
				return
			case LoseReply:
				c.mu.Lock()
				c.lostAt = c.syncs + 1
				c.mu.Unlock()
			}
		}
		if kind := m.kind(); kind == 'Q' || kind == 'S' {
			c.mu.Lock()
			c.syncs++
			c.mu.Unlock()
		}
		if _, err := c.server.Write(m); err != nil {
			return
		}
	}
}

// replies passes on what the server sends, until a reply is to be lost.
func (c *proxied) replies() {
	defer c.end()
	for {
		m, err := readMessage(c.server, true)
		if err != nil {
			return
		}
		c.mu.Lock()
		ready := m.kind() == 'Z'
		if ready {
			c.readys++
		}
		losing, lost := c.lostAt >= 0, ready && c.readys == c.lostAt
		unasked := m.kind() == 'A' && c.readys == c.syncs
		c.mu.Unlock()
		if lost {
			return
		}
		if losing || unasked && c.proxy.deafened() {
			continue
		}
		if _, err := c.client.Write(m); err != nil {
			return
		}
	}
}

// statement is the text of the statement that the message has the server do, if
// it does.
func (c *proxied) statement(m message) (sql string, ok bool) {
	switch m.kind() {
	case 'Q':
		sql, _ := text(m[5:])
		return sql, true
	case 'P':
		name, rest := text(m[5:])
		c.texts[name], _ = text(rest)
	case 'B':
		_, rest := text(m[5:])
		name, _ := text(rest)
		return c.texts[name], true
	}
	return "", false
}

// text is the one that b begins with, up to its NUL byte, and what follows.
func text(b []byte) (string, []byte) {
	before, rest, _ := bytes.Cut(b, []byte{0})
	return string(before), rest
}

// message is one of PostgreSQL's protocol as it is sent: its type, unless it is
// the first, its length, its content.
type message []byte

func (m message) kind() byte { return m[0] }

func readMessage(r io.Reader, typed bool) (message, error) {
	head := 4
	if typed {
		head = 5
	}
	m := make(message, head)
	if _, err := io.ReadFull(r, m); err != nil {
		return nil, err
	}
	m = append(m, make([]byte, max(4, binary.BigEndian.Uint32(m[head-4:]))-4)...)
	_, err := io.ReadFull(r, m[head:])
	return m, err
}
