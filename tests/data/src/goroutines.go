// Two goroutines that split and sort until the process has used MS ms of CPU time; with FRAMES, in a
// recursion of so many frames of 270 bytes.
//
//	goroutines MS [FRAMES]
//
// SPDX-License-Identifier: MIT
package main

import (
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

func usedMs() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		os.Exit(1)
	}
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1000000
}

//go:noinline
func splitter(text string) int {
	pieces := 0
	for i := 0; i < 50; i++ {
		pieces += len(strings.Split(text, ","))
	}
	return pieces
}

//go:noinline
func sorter(words []string) int {
	sorted := make([]string, len(words))
	copy(sorted, words)
	sort.Strings(sorted)
	return len(sorted)
}

//go:noinline
func dive(frames int, work func() int) int {
	var frame [28]int
	frame[frames%28] = frames
	if frames > 0 {
		return dive(frames-1, work) + frame[(frames+1)%28]
	}
	return work() + frame[0]
}

func main() {
	end, err := strconv.ParseInt(os.Args[1], 10, 64)
	if err != nil {
		os.Exit(2)
	}
	frames := 0
	if len(os.Args) > 2 {
		frames, _ = strconv.Atoi(os.Args[2])
	}
	words := []string{}
	for i := 0; i < 2000; i++ {
		words = append(words, strconv.Itoa(i*7919%10007))
	}
	text := strings.Join(words, ",")
	done := make(chan int)
	run := func(work func() int) {
		sum := 0
		for usedMs() < end {
			sum += dive(frames, work)
		}
		done <- sum
	}
	go run(func() int { return splitter(text) })
	go run(func() int { return sorter(words) })
	if <-done+<-done == 0 {
		os.Exit(1)
	}
}
