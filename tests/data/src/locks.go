// A program for tests of offcpu --locks: a goroutine that has a thread of its own waits, and measures
// how long.  It prints "go MICROSECONDS".
//
// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"runtime"
	"time"
)

const rounds = 10

func sendSlowly(to chan<- int) {
	for i := 0; i < rounds; i++ {
		time.Sleep(20 * time.Millisecond)
		to <- i
	}
}

func main() {
	runtime.LockOSThread()
	values := make(chan int)
	go sendSlowly(values)
	total := time.Duration(0)
	for i := 0; i < rounds; i++ {
		began := time.Now()
		<-values
		total += time.Since(began)
	}
	fmt.Println("go", total.Microseconds())
}
