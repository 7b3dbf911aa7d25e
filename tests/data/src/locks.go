// A program for tests of offcpu --locks: a goroutine that has a thread of its own waits, and another
// one observes that.  It prints "go LEAST MOST", as locks.cpp does.
//
// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const rounds = 10

var isAboutToWait int32
var least time.Duration

func sleeps(tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	return err == nil && strings.Contains(string(status), "\nState:\tS")
}

func sendSlowly(tid int, to chan<- int) {
	for i := 0; i < rounds; i++ {
		for atomic.LoadInt32(&isAboutToWait) == 0 || !sleeps(tid) {
			time.Sleep(50 * time.Microsecond)
		}
		atomic.StoreInt32(&isAboutToWait, 0)
		asleep := time.Now()
		time.Sleep(20 * time.Millisecond)
		least += time.Since(asleep)
		to <- i
	}
}

func main() {
	runtime.LockOSThread()
	values := make(chan int)
	go sendSlowly(syscall.Gettid(), values)
	most := time.Duration(0)
	for i := 0; i < rounds; i++ {
		began := time.Now()
		atomic.StoreInt32(&isAboutToWait, 1)
		<-values
		most += time.Since(began)
	}
	fmt.Println("go", least.Microseconds(), most.Microseconds())
}
