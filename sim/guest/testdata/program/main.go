// Command program does what its standard input says, for the tests of package
// guest.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"
	"unsafe"
)

func main() {
	what, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switch string(what) {
	case "done":
		fmt.Println("is not kept")
	case "exit":
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
		os.Exit(3)
	case "panic":
		panic("boom")
	case "trap":
		*(*byte)(unsafe.Pointer(^uintptr(0xff))) = 1
	case "print":
		fmt.Fprint(os.Stderr, strings.Repeat("a", 1000), strings.Repeat("z", 1000))
		os.Exit(1)
	case "spin":
		for {
		}
	case "busy":
		for begin := time.Now(); time.Since(begin) < time.Second; {
		}
	case "calls":
		for range 40 {
			for range 100 {
				time.Now()
			}
			time.Sleep(time.Second)
		}
	case "eat":
		var eaten [][]byte
		for {
			eaten = append(eaten, make([]byte, 1<<20))
		}
	case "shout":
		for loud := make([]byte, 1<<20); ; {
			os.Stdout.Write(loud)
		}
	case "recurse":
		fmt.Println(depth(0))
	case "environment":
		for _, v := range os.Environ() {
			fmt.Println(v)
		}
		fmt.Println(os.Args, time.Now().UTC())
		_, err := os.Open("/")
		fmt.Println(err)
		os.Exit(1)
	case "sleep":
		wall, begin := time.Now().Round(0), time.Now()
		time.Sleep(90 * time.Second)
		fmt.Println(time.Now().Round(0).Sub(wall), time.Since(begin))
		os.Exit(1)
	case "draw":
		fmt.Println(rand.Uint64(), mapOrder(), selectOrder(), goroutineOrder(), wakeOrder())
		os.Exit(1)
	}
}

func depth(n int) int { return 1 + depth(n+1) }

func mapOrder() (order []int) {
	for i := range map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true} {
		order = append(order, i)
	}
	return order
}

// selectOrder is which of several cases that are ready a select takes.
func selectOrder() (order []int) {
	a, b, c := make(chan int, 8), make(chan int, 8), make(chan int, 8)
	for range 8 {
		a <- 1
		b <- 2
		c <- 3
	}
	for range 8 {
		select {
		case i := <-a:
			order = append(order, i)
		case i := <-b:
			order = append(order, i)
		case i := <-c:
			order = append(order, i)
		}
	}
	return order
}

// goroutineOrder is in which order goroutines begin to run.
func goroutineOrder() (order []int) {
	began := make(chan int)
	for i := range 6 {
		go func() { began <- i }()
	}
	for range 6 {
		order = append(order, <-began)
	}
	return order
}

// wakeOrder is in which order goroutines wake that sleep until the same instant.
func wakeOrder() (order []int) {
	woke := make(chan int)
	for i := range 6 {
		go func() { time.Sleep(time.Second); woke <- i }()
	}
	for range 6 {
		order = append(order, <-woke)
	}
	return order
}
